/*
 * Executes a command as an odd parent would:
 *
 *     launch [-i SIGNAL]... [-b SIGNAL]... [-o DESCRIPTOR]... COMMAND [ARGUMENT]...
 *
 * -i: the signal (a number) is ignored; -b: it is blocked; -o: the descriptor is open, of /dev/null.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void ignore(int number)
{
    signal(number, SIG_IGN);
}

static void block(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static void occupy(int number)
{
    int fd = open("/dev/null", O_RDWR);
    if (fd != number) {
        dup2(fd, number);
        close(fd);
    }
}

int main(int argc, char **argv)
{
    for (int option; (option = getopt(argc, argv, "+i:b:o:")) != -1;) {
        if (option == '?')
            return 2;
        int number = atoi(optarg);
        if (option == 'i')
            ignore(number);
        else if (option == 'b')
            block(number);
        else
            occupy(number);
    }
    if (optind >= argc)
        return 2;
    execvp(argv[optind], argv + optind);
    perror(argv[optind]);
    return 127;
}
