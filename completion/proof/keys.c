#include "completion/proof/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "completion/proof/keys-private.h"
#include "completion/proof/pem-private.h"

#define DEFAULT_NAME    "default.key"
#define PRIVATE_SUFFIX  ".key"
#define NAME_LENGTH_MAX 64

_Static_assert(sizeof(((struct signing_key *)NULL)->seed) == crypto_sign_SEEDBYTES, "a seed is a seed");
_Static_assert(sizeof(((struct public_key *)NULL)->bytes) == crypto_sign_PUBLICKEYBYTES, "a key is a key");

void signing_key_done(struct signing_key *key)
{
    public_key_done(&key->public);
    sodium_memzero(key, sizeof(*key));
}

static void signing_key_from_seed(const uint8_t *seed, const char *origin, struct signing_key *ret)
{
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
    memcpy(ret->seed, seed, sizeof(ret->seed));
    crypto_sign_seed_keypair(ret->public.bytes, secret, ret->seed);
    sodium_memzero(secret, sizeof(secret));
    public_key_name(&ret->public);
    ret->public.origin = mem_string(origin);
}

static enum result keys_directory(const char *given, char **ret, struct error *err)
{
    if (given) {
        *ret = mem_string(given);
        return RESULT_OK;
    }
    return config_path("keys", ret, err);
}

/* ---- making one ---- */

static bool name_is_plain(const char *name)
{
    static const char ALLOWED[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strlen(name);
    return length > 0 && length <= NAME_LENGTH_MAX && name[0] != '.' && strspn(name, ALLOWED) == length;
}

static enum result refuse_existing(const char *path, struct error *err)
{
    struct stat status;
    if (lstat(path, &status) != 0)
        return RESULT_OK;
    error_set(err, RESULT_CONFLICT, EEXIST, "%s exists already", path);
    return error_remedy(err, "a key is never replaced: choose another name");
}

static enum result write_private(const char *path, const uint8_t *seed, struct error *err)
{
    char pem[PEM_PRIVATE_SIZE];
    pem_private_write(seed, pem);
    FAILPOINT("key-before-private");
    enum result r = file_write_atomic(path, 0600, true, pem, strlen(pem), err);
    FAILPOINT("key-after-private");
    sodium_memzero(pem, sizeof(pem));
    return r;
}

static enum result write_pair(
    const char *private_path, const char *public_path, struct public_key *ret, struct error *err)
{
    _cleanup_(signing_key_done) struct signing_key key = {0};
    uint8_t seed[crypto_sign_SEEDBYTES];
    random_bytes(seed, sizeof(seed));
    signing_key_from_seed(seed, public_path, &key);
    sodium_memzero(seed, sizeof(seed));
    /* The private one first: a public key whose private half was never kept would be worse than none. */
    enum result r = write_private(private_path, key.seed, err);
    if (r != RESULT_OK)
        return r;
    _cleanup_(mem_free) char *pem = NULL;
    public_key_pem(&key.public, &pem);
    r = file_write_atomic(public_path, 0644, true, pem, strlen(pem), err);
    FAILPOINT("key-after-public");
    if (r != RESULT_OK)
        return r;
    *ret = key.public;
    key.public.origin = NULL;
    return RESULT_OK;
}

enum result key_make(const char *directory, const char *name, struct public_key *ret, struct error *err)
{
    _cleanup_(mem_free) char *place = NULL;
    if (!name_is_plain(name)) {
        error_set(err, RESULT_INVALID, 0, "\"%s\" cannot be the name of a key", name);
        return error_remedy(err, "use letters, digits, '.', '-' and '_', at most %d", NAME_LENGTH_MAX);
    }
    enum result r = keys_directory(directory, &place, err);
    if (r == RESULT_OK)
        r = keys_make_directory(place, err);
    if (r != RESULT_OK)
        return r;
    _cleanup_(mem_free) char *private_path = mem_format("%s/%s" PRIVATE_SUFFIX, place, name);
    _cleanup_(mem_free) char *public_path = mem_format("%s/%s" PUBLIC_SUFFIX, place, name);
    r = refuse_existing(private_path, err);
    if (r == RESULT_OK)
        r = refuse_existing(public_path, err);
    return r == RESULT_OK ? write_pair(private_path, public_path, ret, err) : r;
}

/* ---- finding the default one ---- */

static enum result no_key(const char *directory, struct error *err)
{
    error_set(err, RESULT_ABSENT, ENOENT, "there is no signing key in %s", directory);
    return error_remedy(err, "make one with `tenure init` or `tenure key new`");
}

/* Whoever can write to the directory can put a key of theirs in place of ours. */
static enum result check_directory(const char *directory, struct error *err)
{
    struct stat status;
    if (stat(directory, &status) != 0)
        return errno == ENOENT || errno == ENOTDIR ? no_key(directory, err)
                                                   : error_errno(err, errno, "cannot look at %s", directory);
    if (!S_ISDIR(status.st_mode))
        return no_key(directory, err);
    if (status.st_uid != geteuid()) {
        error_set(err, RESULT_DENIED, 0, "%s belongs to user %u, not to you", directory, status.st_uid);
        return error_remedy(err, "run as its owner, or set XDG_CONFIG_HOME to a directory of your own");
    }
    if (status.st_mode & (S_IWGRP | S_IWOTH)) {
        error_set(err, RESULT_DENIED, 0, "%s can be written by others (mode %04o)", directory,
            status.st_mode & 07777U);
        return error_remedy(err, "chmod 700 %s", directory);
    }
    return RESULT_OK;
}

static enum result the_only_one(
    const char *directory, const struct name_list *names, char **ret, struct error *err)
{
    if (names->count == 0)
        return no_key(directory, err);
    if (names->count > 1) {
        error_set(err, RESULT_INVALID, 0, "%s holds %zu keys, and none is %s", directory, names->count,
            DEFAULT_NAME);
        return error_remedy(err, "rename the one to sign with to %s", DEFAULT_NAME);
    }
    *ret = mem_format("%s/%s", directory, names->items[0]);
    return RESULT_OK;
}

static enum result find_default(const char *given, char **ret_path, struct error *err)
{
    _cleanup_(mem_free) char *directory = NULL;
    _cleanup_(name_list_done) struct name_list names = {0};
    struct stat status;
    enum result r = keys_directory(given, &directory, err);
    if (r == RESULT_OK)
        r = check_directory(directory, err);
    if (r != RESULT_OK)
        return r;
    _cleanup_(mem_free) char *path = mem_format("%s/%s", directory, DEFAULT_NAME);
    if (lstat(path, &status) == 0) {
        *ret_path = STEAL(path);
        return RESULT_OK;
    }
    r = name_list_read(directory, PRIVATE_SUFFIX, &names, err);
    return r == RESULT_OK ? the_only_one(directory, &names, ret_path, err) : r;
}

/* ---- reading it ---- */

static enum result check_private(int fd, const char *path, struct error *err)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return error_errno(err, errno, "cannot look at %s", path);
    if (!S_ISREG(status.st_mode))
        return error_set(err, RESULT_DENIED, 0, "%s is not a regular file", path);
    if (status.st_uid != geteuid()) {
        error_set(err, RESULT_DENIED, 0, "%s belongs to user %u, not to you", path, status.st_uid);
        return error_remedy(err, "run as its owner, or make a key of your own with `tenure key new`");
    }
    if (status.st_mode & 07777U & ~0600U) {
        error_set(err, RESULT_DENIED, 0, "%s is open to others (mode %04o)", path, status.st_mode & 07777U);
        return error_remedy(err, "chmod 600 %s, and make a new key if others may have read it", path);
    }
    return RESULT_OK;
}

/* The descriptor is what is checked and what is read: nothing can be exchanged in between. */
static enum result open_private(const char *path, int *ret_fd, struct error *err)
{
    _cleanup_(fd_cleanup) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ELOOP)
        return error_set(err, RESULT_DENIED, ELOOP, "%s is a symbolic link", path);
    if (fd < 0 && (errno == EACCES || errno == EPERM))
        return error_set(err, RESULT_DENIED, errno, "%s may not be read by you", path);
    if (fd < 0)
        return error_errno(err, errno, "cannot open %s", path);
    enum result r = check_private(fd, path, err);
    if (r != RESULT_OK)
        return r;
    *ret_fd = fd;
    fd = -1;
    return RESULT_OK;
}

static enum result read_seed(int fd, const char *path, uint8_t *ret_seed, struct error *err)
{
    char bytes[PEM_LIMIT_BYTES];
    size_t length = 0;
    ssize_t got;
    do {
        got = read(fd, bytes + length, sizeof(bytes) - length);
        length += got > 0 ? (size_t)got : 0;
    } while ((got > 0 && length < sizeof(bytes)) || (got < 0 && errno == EINTR));
    enum result r = RESULT_OK;
    if (got < 0)
        r = error_errno(err, errno, "cannot read %s", path);
    else if (!pem_private_read(bytes, length, ret_seed))
        r = error_set(err, RESULT_INVALID, 0, "%s is not an Ed25519 private key in PEM", path);
    sodium_memzero(bytes, sizeof(bytes));
    return r;
}

/* Whoever was killed between the two files of a pair left a key that signs what nobody trusts. Where the
 * public one cannot be written now, the next time may do. */
static void restore_public(const char *private_path, const struct public_key *key)
{
    int stem = (int)(strlen(private_path) - strlen(PRIVATE_SUFFIX));
    _cleanup_(mem_free) char *path = mem_format("%.*s" PUBLIC_SUFFIX, stem, private_path);
    _cleanup_(mem_free) char *pem = NULL;
    struct stat status;
    if (lstat(path, &status) == 0)
        return;
    public_key_pem(key, &pem);
    (void)!file_write_atomic(path, 0644, true, pem, strlen(pem), NULL);
}

enum result key_load(const char *directory, struct signing_key *ret, struct error *err)
{
    _cleanup_(mem_free) char *path = NULL;
    _cleanup_(fd_cleanup) int fd = -1;
    uint8_t seed[crypto_sign_SEEDBYTES];
    enum result r = find_default(directory, &path, err);
    if (r == RESULT_OK)
        r = open_private(path, &fd, err);
    if (r == RESULT_OK)
        r = read_seed(fd, path, seed, err);
    if (r == RESULT_OK) {
        signing_key_from_seed(seed, path, ret);
        restore_public(path, &ret->public);
    }
    sodium_memzero(seed, sizeof(seed));
    return r;
}

enum result key_check(const char *directory, struct error *err)
{
    struct signing_key key = {0};
    enum result r = key_load(directory, &key, err);
    signing_key_done(&key);
    return r;
}
