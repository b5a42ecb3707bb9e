#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/files.h"

#define MS_PER_DAY          (INT64_C(24) * 60 * 60 * MS_PER_S)
#define NS_PER_MS           INT64_C(1000000)
#define DAYS_BEFORE_1970    INT64_C(719528) /* from 0000-01-01 */
#define WALL_MAX_MS         INT64_C(253402300799999)
#define WALL_MIN_MS         (-DAYS_BEFORE_1970 * MS_PER_DAY)
#define INITIAL_TIME_NS_INO 0xEFFFFFFAU /* PROC_TIME_INIT_INO of the kernel's linux/proc_ns.h */
#define OFFSETS_LIMIT_BYTES 4096

/* The time namespace of a process does not change while it runs: looked at once. */
static pthread_once_t namespace_once = PTHREAD_ONCE_INIT;
static int64_t namespace_offset_ms;
static bool namespace_shifted;

static bool offsets_parse(const char *text, int64_t *ret_ms)
{
    const char *line = strstr(text, "boottime");
    long long seconds, nanoseconds;
    if (!line || sscanf(line, "boottime %lld %lld", &seconds, &nanoseconds) != 2)
        return false;
    *ret_ms = (int64_t)seconds * MS_PER_S + (int64_t)nanoseconds / NS_PER_MS;
    return true;
}

static void namespace_read(void)
{
    struct stat own, children;
    if (stat("/proc/self/ns/time", &own) != 0 || own.st_ino == INITIAL_TIME_NS_INO)
        return; /* a kernel without time namespaces, or not in one */
    /* The file tells the offsets that children get. They are ours only if we are in the same namespace. */
    bool same = stat("/proc/self/ns/time_for_children", &children) == 0 && children.st_ino == own.st_ino;
    _cleanup_(text_done) struct text text = {0};
    if (file_read(-1, "/proc/self/timens_offsets", false, OFFSETS_LIMIT_BYTES, &text, NULL) != RESULT_OK)
        return;
    if (same && offsets_parse(text.bytes, &namespace_offset_ms))
        namespace_shifted = namespace_offset_ms != 0;
    else
        namespace_shifted = true; /* cannot be computed away: callers must treat it as shifted */
}

static int64_t read_ms(clockid_t id)
{
    struct timespec now;
    if (clock_gettime(id, &now) != 0)
        abort();
    return (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / NS_PER_MS;
}

static int64_t system_boot_ms(const struct clock *clock _unused_)
{
    pthread_once(&namespace_once, namespace_read);
    return read_ms(CLOCK_BOOTTIME) - namespace_offset_ms;
}

#ifdef TENURE_FAILPOINTS
static pthread_once_t test_offset_once = PTHREAD_ONCE_INIT;
static int64_t test_offset_ms;

static void test_offset_read(void)
{
    const char *text = getenv("TENURE_TEST_WALL_OFFSET_MS");
    if (text && !text_parse_int(text, INT64_MIN / 4, INT64_MAX / 4, &test_offset_ms))
        abort(); /* a test that means to move the clock and does not would prove nothing */
}

static int64_t system_wall_ms(const struct clock *clock _unused_)
{
    pthread_once(&test_offset_once, test_offset_read);
    return read_ms(CLOCK_REALTIME) + test_offset_ms;
}
#else
static int64_t system_wall_ms(const struct clock *clock _unused_)
{
    return read_ms(CLOCK_REALTIME);
}
#endif

const struct clock *clock_system(void)
{
    static const struct clock SYSTEM = {.boot_ms = system_boot_ms, .wall_ms = system_wall_ms};
    return &SYSTEM;
}

bool clock_is_shifted(void)
{
    pthread_once(&namespace_once, namespace_read);
    return namespace_shifted;
}

/* `clock` is the first member, so its address is the address of the whole. */
static const struct clock_manual *manual_of(const struct clock *clock)
{
    return (const struct clock_manual *)clock;
}

static int64_t manual_boot_ms(const struct clock *clock)
{
    return manual_of(clock)->now_boot_ms;
}

static int64_t manual_wall_ms(const struct clock *clock)
{
    return manual_of(clock)->now_wall_ms;
}

void clock_manual_init(struct clock_manual *manual, int64_t boot_ms, int64_t wall_ms)
{
    *manual = (struct clock_manual){
        .clock = {.boot_ms = manual_boot_ms, .wall_ms = manual_wall_ms},
        .now_boot_ms = boot_ms,
        .now_wall_ms = wall_ms,
    };
}

/* The calendar is computed here: gmtime_r() reads the time zone files first, which costs a command its start.
 */

static bool year_is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t month_days(int64_t year, int64_t month)
{
    static const int8_t DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && year_is_leap(year) ? 29 : DAYS[month - 1];
}

/* Days from 0000-01-01 to the first day of `year`. The year 0 is a leap year. */
static int64_t days_before_year(int64_t year)
{
    if (year == 0)
        return 0;
    int64_t full = year - 1;
    return year * 365 + 1 + full / 4 - full / 100 + full / 400;
}

static void date_of_day(int64_t day, int *ret_year, int *ret_month, int *ret_day)
{
    int64_t year = day / 366, month = 1; /* never too late, and close */
    while (days_before_year(year + 1) <= day)
        year++;
    int64_t rest = day - days_before_year(year);
    for (; rest >= month_days(year, month); month++)
        rest -= month_days(year, month);
    *ret_year = (int)year;
    *ret_month = (int)month;
    *ret_day = (int)rest + 1;
}

static int64_t within(int64_t value, int64_t min, int64_t max)
{
    return value < min ? min : value > max ? max : value;
}

void clock_format_utc(int64_t wall_ms, char ret[CLOCK_TEXT_SIZE])
{
    int64_t since_year_0 = within(wall_ms, WALL_MIN_MS, WALL_MAX_MS) - WALL_MIN_MS;
    int seconds = (int)(since_year_0 % MS_PER_DAY / MS_PER_S);
    int year, month, day;
    date_of_day(since_year_0 / MS_PER_DAY, &year, &month, &day);
    snprintf(ret, CLOCK_TEXT_SIZE, "%04u-%02u-%02uT%02u:%02u:%02uZ", (unsigned)year % 10000U,
        (unsigned)month % 100U, (unsigned)day % 100U, (unsigned)seconds / 3600U % 100U,
        (unsigned)seconds / 60U % 60U, (unsigned)seconds % 60U);
}

void clock_format_people(int64_t wall_ms, char ret[CLOCK_TEXT_SIZE])
{
    clock_format_utc(wall_ms, ret);
    char *between = strchr(ret, 'T');
    if (between)
        *between = ' ';
}

/* Takes `digits` digits and then the character `after`. */
static bool take_number(const char **text, int digits, char after, int64_t min, int64_t max, int64_t *ret)
{
    int64_t number = 0;
    for (int i = 0; i < digits; i++, (*text)++) {
        if (**text < '0' || **text > '9')
            return false;
        number = number * 10 + (**text - '0');
    }
    if (after && *(*text)++ != after)
        return false;
    *ret = number;
    return number >= min && number <= max;
}

/* ".5" is 500 ms; what is finer than a millisecond is cut off. */
static bool take_fraction(const char **text, int64_t *ret_ms)
{
    *ret_ms = 0;
    if (**text != '.')
        return true;
    const char *first = ++(*text);
    int64_t weight = 100;
    for (; **text >= '0' && **text <= '9'; (*text)++, weight /= 10)
        *ret_ms += weight * (**text - '0');
    return *text > first;
}

bool clock_parse_utc(const char *text, int64_t *ret_wall_ms)
{
    int64_t year, month, day, hour, minute, second, fraction_ms;
    if (!take_number(&text, 4, '-', 0, 9999, &year) || !take_number(&text, 2, '-', 1, 12, &month) ||
        !take_number(&text, 2, 'T', 1, month_days(year, month), &day) ||
        !take_number(&text, 2, ':', 0, 23, &hour) || !take_number(&text, 2, ':', 0, 59, &minute) ||
        !take_number(&text, 2, '\0', 0, 59, &second) || !take_fraction(&text, &fraction_ms))
        return false;
    if (strcmp(text, "Z") != 0)
        return false;
    int64_t days = days_before_year(year) - DAYS_BEFORE_1970 + day - 1;
    for (int64_t before = 1; before < month; before++)
        days += month_days(year, before);
    *ret_wall_ms = days * MS_PER_DAY + ((hour * 60 + minute) * 60 + second) * MS_PER_S + fraction_ms;
    return true;
}
