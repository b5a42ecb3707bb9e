/*
 * peak COMMAND...: runs it and says on standard error how much memory it had at most, itself, without its
 * children: "peak KiB" (VmHWM at its exit, proc(5)). What `time -v` says would be that of the largest child
 * instead.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void say_peak(pid_t pid)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status)) {
        long kib;
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            fprintf(stderr, "peak %ld\n", kib);
    }
    if (status)
        fclose(status);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL);
    for (int pass = 0;;) {
        ptrace(PTRACE_CONT, pid, NULL, (long)pass);
        pass = 0;
        if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
            break;
        if (status >> 8 == (SIGTRAP | (PTRACE_EVENT_EXIT << 8)))
            say_peak(pid);
        else if (WSTOPSIG(status) != SIGTRAP)
            pass = WSTOPSIG(status);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
