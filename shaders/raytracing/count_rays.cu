// Counts rays for a picture's report: in word_count words of a stencil (stencil.h), every `step`-th word from `first`
// on, adds the number of set bits to counts[0] and the number of words that are 0 to counts[1]. It is a separate
// program, because raytrace.cu has a variant for each kind of scene.
KERNEL count_rays(GLOBAL const uint *words, int first, int step, int word_count, GLOBAL uint *counts) {
    uint i = thread_index();
    if (i >= (uint)word_count) return;
    uint word = words[(uint)first + i * (uint)step];
    if (word)
        atomic_add(&counts[0], popcount(word));
    else
        atomic_add(&counts[1], 1u);
}
