#include "completion/proof/pem-private.h"

#include <sodium.h>
#include <string.h>

#define PREFIX_BYTES_MAX 16
#define DER_BYTES_MAX    (PREFIX_BYTES_MAX + PEM_KEY_BYTES)
#define BASE64_SIZE_MAX  65

struct pem_form {
    const char *begin, *end;
    uint8_t prefix[PREFIX_BYTES_MAX]; /* of the DER; the key's 32 bytes follow and end it */
    size_t prefix_bytes, base64_length;
};

static const struct pem_form PRIVATE = {
    .begin = "-----BEGIN PRIVATE KEY-----\n",
    .end = "\n-----END PRIVATE KEY-----\n",
    /* SEQUENCE { INTEGER 0, SEQUENCE { OID 1.3.101.112 }, OCTET STRING { OCTET STRING } } */
    .prefix = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20},
    .prefix_bytes = 16,
    .base64_length = 64,
};

static const struct pem_form PUBLIC = {
    .begin = "-----BEGIN PUBLIC KEY-----\n",
    .end = "\n-----END PUBLIC KEY-----\n",
    /* SEQUENCE { SEQUENCE { OID 1.3.101.112 }, BIT STRING without unused bits } */
    .prefix = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00},
    .prefix_bytes = 12,
    .base64_length = 60,
};

static void pem_write(const struct pem_form *form, const uint8_t key[PEM_KEY_BYTES], char *ret)
{
    uint8_t der[DER_BYTES_MAX];
    memcpy(der, form->prefix, form->prefix_bytes);
    memcpy(der + form->prefix_bytes, key, PEM_KEY_BYTES);
    char *at = stpcpy(ret, form->begin);
    sodium_bin2base64(
        at, BASE64_SIZE_MAX, der, form->prefix_bytes + PEM_KEY_BYTES, sodium_base64_VARIANT_ORIGINAL);
    strcpy(at + form->base64_length, form->end);
    sodium_memzero(der, sizeof(der));
}

static bool der_read(const struct pem_form *form, const char *base64, uint8_t ret_key[PEM_KEY_BYTES])
{
    uint8_t der[DER_BYTES_MAX];
    size_t got = 0;
    bool fits = sodium_base642bin(der, sizeof(der), base64, form->base64_length, NULL, &got, NULL,
                    sodium_base64_VARIANT_ORIGINAL) == 0 &&
                got == form->prefix_bytes + PEM_KEY_BYTES &&
                memcmp(der, form->prefix, form->prefix_bytes) == 0;
    if (fits)
        memcpy(ret_key, der + form->prefix_bytes, PEM_KEY_BYTES);
    sodium_memzero(der, sizeof(der));
    return fits;
}

static bool pem_read(
    const struct pem_form *form, const char *bytes, size_t length, uint8_t ret_key[PEM_KEY_BYTES])
{
    size_t begin_length = strlen(form->begin), end_length = strlen(form->end);
    if (length != begin_length + form->base64_length + end_length)
        return false;
    if (memcmp(bytes, form->begin, begin_length) != 0 ||
        memcmp(bytes + begin_length + form->base64_length, form->end, end_length) != 0)
        return false;
    return der_read(form, bytes + begin_length, ret_key);
}

void pem_private_write(const uint8_t seed[PEM_KEY_BYTES], char ret[PEM_PRIVATE_SIZE])
{
    pem_write(&PRIVATE, seed, ret);
}

bool pem_private_read(const char *bytes, size_t length, uint8_t ret_seed[PEM_KEY_BYTES])
{
    return pem_read(&PRIVATE, bytes, length, ret_seed);
}

void pem_public_write(const uint8_t key[PEM_KEY_BYTES], char ret[PEM_PUBLIC_SIZE])
{
    pem_write(&PUBLIC, key, ret);
}

bool pem_public_read(const char *bytes, size_t length, uint8_t ret_key[PEM_KEY_BYTES])
{
    uint8_t key[PEM_KEY_BYTES];
    if (!pem_read(&PUBLIC, bytes, length, key) || !crypto_core_ed25519_is_valid_point(key))
        return false;
    memcpy(ret_key, key, sizeof(key));
    return true;
}
