int test_contention(void);
int test_sqlite(void);
int test_sqlite_faults(void);
int test_contention(void)
{
    return 0;
}
int test_sqlite(void)
{
    return 0;
}
int test_sqlite_faults(void)
{
    return 0;
}
