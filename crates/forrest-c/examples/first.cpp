// In C++, with forrest.hpp: first URL stores trees, iterates over them, and changes two of them as one.

#include <forrest.hpp>

#include <iostream>

int main(int argc, char **argv) {
    try {
        forrest::Db db(argc > 1 ? argv[1] : "memory:");
        db.set("oak", "Quercus robur");
        db.set("elm", "Ulmus glabra");
        auto oak = db.get("oak"); // it stays as it is
        db.set("oak", "Quercus petraea");
        std::cout << "it was " << oak->view() << ", and is " << db.get("oak")->view() << '\n';
        std::cout << "there is " << (db.contains("fir") ? "a" : "no") << " fir\n";

        const forrest::Snapshot before = db.snapshot();
        db.write(forrest::Batch().erase("elm").set("ash", "Fraxinus excelsior")); // both or none
        for (auto [key, value] : db.range())
            std::cout << key << ": " << value << '\n';
        for (auto [key, value] : before.range_back("e", "n"))
            std::cout << "before, " << key << ": " << value << '\n';

        forrest::Transaction transaction = db.begin();
        do
            transaction.add("trees", transaction.contains("ash") ? 1 : 0);
        while (!transaction.commit());

        forrest::Db other("mermory:");
    } catch (const forrest::Error &error) {
        std::cout << error.what() << '\n';
        return error.code() == FORREST_INVALID_ARGUMENT ? 0 : 1;
    }
    return 1;
}
