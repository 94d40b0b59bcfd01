// Counts the active rays in every `step`-th word of a stencil from word `first` on, and the words that are 0. A program
// of its own: those of raytrace.cu have a variant for each kind of scene.
KERNEL count_rays(GLOBAL const uint *words, int first, int step, int word_count, GLOBAL uint *counts) {
    uint i = thread_index();
    if (i >= (uint)word_count) return;
    uint word = words[(uint)first + i * (uint)step];
    if (word)
        atomic_add(&counts[0], popcount(word));
    else
        atomic_add(&counts[1], 1u);
}
