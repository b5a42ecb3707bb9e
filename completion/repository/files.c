/* What git takes for files of a tree, committed or not, and what it would not. */
#include "base/memory.h"
#include "completion/repository/git-private.h"

enum result repository_files(struct runner *runner, int top_fd, struct text *ret, struct error *err)
{
    struct collect call =
        GIT_CALL_PLAIN(top_fd, "ls-files", "-z", "--cached", "--others", "--exclude-standard");
    enum result r = git_run(runner, &call, err);
    if (r == RESULT_OK) {
        *ret = call.output;
        call.output = (struct text){0};
    }
    git_calls_done(&call, 1);
    return r;
}

bool repository_ignores(struct runner *runner, int top_fd, const char *path)
{
    struct collect call = GIT_CALL_PLAIN(top_fd, "check-ignore", "-q", "--", path);
    bool ignored = git_run_all(runner, &call, 1, NULL) == RESULT_OK && git_exited(&call, 0);
    git_calls_done(&call, 1);
    return ignored;
}
