/* A program in the style of those written for llds: values by the hash of their names, a handle for each thread. Compile it with
   pkg-config's flags of "llds". It runs over the home that FORREST_URL names; the default is "llds:forrest". */

#include "forrest.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define KEYS 2000
#define SEED 0x11d5

static uint64_t key_of(const char *name) {
    return ft_MurmurHash64A(name, (int)strlen(name), SEED);
}

/* Each thread counts those of its keys whose values it read back correctly. */
static void *work(void *argument) {
    long *number = (long *)argument, there = 0;
    FORREST *forrest = forrest_alloc();
    if (forrest == NULL)
        exit(1);
    for (long at = 0; at < KEYS; at++) {
        char name[40], value[20];
        sprintf(name, "thread %ld, key %ld", *number, at);
        sprintf(value, "%ld", at);
        llds_result_ent *put = forrest_insert_key(forrest, key_of(name), value, (int)strlen(value));
        llds_result_ent *got = forrest_get_key(forrest, key_of(name));
        if (put != NULL && put->result == SUCCESS && got != NULL && got->result == SUCCESS)
            there += strcmp((const char *)got->val, value) == 0;
        free(put);
        if (got != NULL)
            free(got->val);
        free(got);
    }
    forrest_cleanup(forrest);
    *number = there;
    return NULL;
}

int main(void) {
    FORREST *forrest = forrest_alloc();
    if (forrest == NULL)
        return 1;
    char quercus[] = "Quercus";
    free(forrest_insert_key(forrest, key_of("oak"), quercus, sizeof quercus - 1));

    llds_result_ent *oak = forrest_get_key(forrest, key_of("oak"));
    if (oak == NULL || oak->result != SUCCESS)
        return 1;
    printf("oak is %.*s\n", oak->vlen, (const char *)oak->val);
    free(oak->val);
    free(oak);

    llds_result_ent *fir = forrest_get_key(forrest, key_of("fir"));
    if (fir != NULL && fir->result != SUCCESS)
        puts("no fir");
    free(fir);

    pthread_t threads[THREADS];
    long numbers[THREADS], there = 0;
    for (int at = 0; at < THREADS; at++) {
        numbers[at] = at;
        if (pthread_create(&threads[at], NULL, work, &numbers[at]) != 0)
            return 1;
    }
    for (int at = 0; at < THREADS; at++) {
        pthread_join(threads[at], NULL);
        there += numbers[at];
    }
    printf("%ld of %d are there\n", there, THREADS * KEYS);

    free(forrest_rm_tree(forrest));
    forrest_cleanup(forrest);
    return 0;
}
