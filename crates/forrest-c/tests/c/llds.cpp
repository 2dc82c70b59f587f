// The functions of llds's library from C++, with results that free themselves: llds URL, where FORREST_URL has the same URL.

#include <llds/forrest.h>

#include <iostream>
#include <memory>
#include <string>

struct Free {
    void operator()(llds_result_ent *entry) const {
        if (entry != nullptr)
            free(entry->val);
        free(entry);
    }
};
using Answer = std::unique_ptr<llds_result_ent, Free>;

struct Cleanup {
    void operator()(FORREST *tree) const { forrest_cleanup(tree); }
};

int main() {
    std::unique_ptr<FORREST, Cleanup> tree(forrest_alloc());
    std::string text = "Quercus";
    const uint64_t key = ft_MurmurHash64A("oak", 3, 7);
    Answer put(forrest_insert_key(tree.get(), key, text.data(), int(text.size())));
    Answer got(forrest_get_key(tree.get(), key));
    if (put->result != SUCCESS || got->result != SUCCESS || static_cast<const char *>(got->val) != text)
        return 1;
    std::unique_ptr<FORREST, Cleanup> small(forrest_alloc_max(3));
    Answer too_long(forrest_get_key(small.get(), key));
    Answer removed(forrest_rm_key(small.get(), key));
    Answer absent(forrest_rm_key(tree.get(), key));
    if (too_long->result == SUCCESS || removed->result != SUCCESS || absent->result == SUCCESS)
        return 1;
    Answer gone(forrest_rm_tree(tree.get()));
    Answer none(forrest_get_key(tree.get(), key));
    if (gone->result != SUCCESS || none->result == SUCCESS || none->val != nullptr)
        return 1;
    std::cout << "all is as it should be\n";
}
