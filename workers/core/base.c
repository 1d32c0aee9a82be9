#include "base.h"

#include <stdio.h>

_Noreturn void die(const char *file, int line, const char *what) {
    fprintf(stderr, "the core has failed at %s:%d: %s\n", file, line, what);
    fflush(stderr);
    abort();
}

#ifdef NDEBUG
bool safeguards_without(u32 mask) { return !mask; }
#else
u32 safeguards_off;
bool safeguards_without(u32 mask) {
    safeguards_off = mask;
    return true;
}
#endif

void *memory(size_t size) {
    void *found = malloc(size);
    if (found == NULL) DIE("there is no memory left");
    return found;
}

void *memory_again(void *old, size_t size) {
    void *found = realloc(old, size);
    if (found == NULL) DIE("there is no memory left");
    return found;
}

struct blob *blob_new(const u8 *data, u32 size) {
    struct blob *blob = memory(sizeof *blob + size);
    blob->references = 1;
    blob->size = size;
    if (size) memcpy(blob->data, data, size);
    return blob;
}

void blob_drop(struct blob *blob) {
    if (blob != NULL && !--blob->references) free(blob);
}

void words_grow(struct words *words) {
    words->room = words->room ? 2 * words->room : 64;
    words->items = memory_again(words->items, words->room * sizeof *words->items);
}

void words_free(struct words *words) {
    free(words->items);
    *words = (struct words){0};
}
