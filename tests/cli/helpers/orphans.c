/*
 * orphans N FILE: forks N grandchildren with sessions of their own, whose parents are gone at once; each ends
 * with a status of its own. Exits 0 once all have begun, their number in FILE.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void orphan_begin(int number)
{
    pid_t middle = fork();
    if (middle < 0)
        exit(2);
    if (middle > 0) {
        waitpid(middle, NULL, 0);
        return;
    }
    if (fork() == 0) {
        setsid();
        _exit(1 + number % 255);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int count = atoi(argv[1]);
    for (int i = 0; i < count; i++)
        orphan_begin(i);
    FILE *file = fopen(argv[2], "w");
    if (!file)
        return 2;
    fprintf(file, "%d\n", count);
    return fclose(file) == 0 ? 0 : 2;
}
