"""Words that this project retired: each has its field's word, and none of them comes back.

The left side is what is looked for in code, shaders, scenes and tests (whole words); the right side is the word to use.
"""

import re
from functools import cache
from subprocess import run

import pytest

from renderer.paths import ROOT

SPELLING = {
    "colour": "color", "colours": "colors", "coloured": "colored", "centre": "center", "centres": "centers",
    "centred": "centered", "grey": "gray", "neighbour": "neighbor", "neighbours": "neighbors",
    "neighbouring": "neighboring", "normalise": "normalize", "normalised": "normalized", "initialise": "initialize",
    "initialised": "initialized", "quantise": "quantize", "quantised": "quantized", "optimise": "optimize",
    "optimised": "optimized", "factorise": "factorize", "factorised": "factorized",
    "factorisation": "factorization", "recognise": "recognize", "recognised": "recognized", "behaviour": "behavior",
    "unpolarised": "unpolarized", "equalise": "equalize", "specialised": "specialized",
    "parallelise": "parallelize", "vectorise": "vectorize", "analyse": "analyze", "catalogue": "catalog",
}  # fmt: skip
NAMES = {
    "aim_at_light": "sample_direct", "alarm_rate": "slower_rate", "AliasItem": "TypeAlias", "autotuned": "tuned",
    "bad_points": "bad_values", "BadInput": "InputError", "beam_around": "bound_packet", "blacken": "clear_black",
    "blended_affine": "interpolate_affine", "boxes_of": "primitive_boxes", "Branches": "Bvh8",
    "budget_of": "choose_splits", "cell_density": "pdf", "centre_nodes": "center_nodes",
    "chains_for": "chain_count", "choice_tables": "xform_distributions", "colour_of": "color",
    "cone_of": "sample_cone", "copy_home": "read_back", "corners_of": "bounds", "corners_tangent": "tangent",
    "corners_tint": "vertex_color", "cosine_direction": "sample_cosine_hemisphere", "CPU_BAND": "CPU_TILE_SECONDS",
    "Crew": "multicore", "cross_exact": "cross_fma", "CUT_OUT": "ALPHA_TEST", "DARKEST": "MIN_LUMINANCE",
    "deal_samples": "sobol_sample", "DealtFactors": "BlockCyclicFactors", "density_of_hit": "light_pdf",
    "dot_exact": "dot_fma", "draw_layers": "draw_aovs", "drifting_rows": "odd rows", "drop_key": "delete_keyframe",
    "Effort": "TimingOptions", "EndlessLoop": "LoopLimitExceeded", "environment_picture": "environment_map",
    "estimator_reach": "density_filter_radius", "evaluator_of": "make_target", "FamilyValue": "OverloadSet",
    "find_any": "occluded", "find_closest": "intersect", "find_owners": "assign_binders",
    "find_share": "sample_discrete", "follow_next": "compare_with_next", "found_by_chance": "is_area_light",
    "FRAME_TAKEN": "FILM_PARAMS", "free_name": "unused_path", "from_frame": "local_to_world",
    "FunctionText": "DeviceFunctionEmitter", "fuse_of": "fuse_steps", "gather_band": "assemble_gather_matrix",
    "gather_flags": "gather_word", "GlobalItem": "GlobalDeclaration", "GlTarget": "GlslTarget",
    "GlWriter": "GlslEmitter", "group_part": "plan_reduction", "GroupText": "ReductionState",
    "halving_in_passes": "pairwise_sum", "has_votes": "has_ballot", "HeadVariable": "BoundParameter",
    "HeldArray": "EvaluatedArray", "hit_triangle": "intersect_triangle", "hold_clock": "pin_time",
    "HostBody": "HostExecutor", "hsv_of": "rgb_to_hsv", "interpreter_text": "generic_source",
    "into_field": "to_local", "is_market": "is_matrix_market", "is_noisy": "above_threshold",
    "joined_bad": "poison", "keep_reference": "set_reference", "keep_steadiest": "keep_min_cost",
    "keep_views": "copy_views", "kept_by_dielectric": "albedo", "kept_by_reflector": "albedo",
    "keys_to_write": "keyframes_for_file", "largest_given": "max_input", "layout_at_hand": "current_layout",
    "leave_surface": "offset_ray_origin", "leaves_rightly": "offset_ray_origin", "lone_hit": "single_ray_hit",
    "LONE_RAYS": "USE_BVH8", "LoneRay": "SingleRay", "look_at_files": "reload_changed_files",
    "MachineCannot": "UnavailableError", "map_part": "plan_map", "measured_axes": "resolve_v_direction",
    "meet_field": "sphere_trace", "mesh_of": "flow_grid", "MIRRORED": "DELTA_PDF",
    "moments_of": "make_temporal_samples", "MOST_BALLS": "MAX_SPHERES", "MOST_FIELDS": "MAX_DISTANCE_FIELDS",
    "MOST_ITERATIONS": "MAX_ITERATIONS", "MOST_NODES": "MAX_NODES", "most_parts": "max_refs",
    "MOST_SHINING": "MAX_EMITTERS", "MOST_STEPS": "MAX_STEPS", "moved_sash": "move_splitter",
    "must_be_good": "poison", "nearest_hit": "intersect", "NotScalar": "NotDeviceCode",
    "of_settings": "setting_actions", "off_surface": "offset_ray", "one_bad": "poison",
    "one_or_tuple": "tuple_type", "one_piece": "reduce_chunk", "only_spoiled": "only_if_inexact",
    "open_gpu": "open_context", "open_here": "open_in_active_panel", "paint_depth": "shade_disparity",
    "panel_part": "plan_cpu_matmul", "panels_follow": "lookahead", "part_key": "key",
    "picture_at": "sample_texture", "pieces_of": "chunk_ranges", "pixels_a_unit": "pixels_per_unit",
    "place_instances": "update_instances", "place_lets": "hoist_reductions", "place_of": "camera_position",
    "place_picture": "blit", "PLACED_GIVEN": "INSTANCE_ARGS", "PLACED_TAKEN": "INSTANCE_PARAMS",
    "put_panel": "move_panel", "read_field": "read_light_field", "read_sides": "read_matrices",
    "refocus_runs": "refocus_cpu", "refocus_tiles": "refocus_gpu", "refuse_tiles": "require_untiled",
    "refuse_twins": "check_unique_names", "reread": "reload", "retone": "update_tone_mapping",
    "rgb_of": "hsv_to_rgb", "sampler_key": "sampler_state", "ScalarCompiler": "DeviceFunctionLowering",
    "SCENE_GIVEN": "SCENE_ARGS", "SCENE_TAKEN": "SCENE_PARAMS", "scramble_upwards": "owen_scramble",
    "set_aside": "rotate_session", "SETTLE_EVERY": "MATERIALIZE_EVERY", "share_of_hit": "mis_weight",
    "sheet_of": "texture_layout", "sky_picture": "sky_map", "SOFT_BAND": "SOFTWARE_GL_TILE_SECONDS",
    "solve_ahead": "lookahead_solve", "SPACE_IDENTITY": "IDENTITY_3D", "stand_as": "apply_layout",
    "stand_in_grid": "reset_to_grid", "STENCIL_SCRATCH": "local_words", "steps_of": "max_steps",
    "StoredArray": "InputArray", "structure_of": "specialize", "Studio": "AppState",
    "summed_shares": "cumulative_distribution", "surely_inside": "in_cardioid_or_bulb",
    "symmetry_maps": "symmetry_xforms", "take_leaf": "intersect_leaf", "take_nearer": "update_closest",
    "target_of": "target_factory", "tessellated": "tessellate", "text_of_flames": "to_xml",
    "TEXTURES_TAKEN": "TEXTURE_PARAMS", "ThinFactors": "thin factors", "tile_part": "plan_tiled_matmul",
    "TO_CONTROLS": "FOCUS_CONTROLS", "toggle_typing": "toggle_keyboard_navigation", "toml_of": "to_toml",
    "TRAYS": "readback buffers", "tree_of": "build_bvh", "Trouble": "FailureReport", "turned_over": "flip_y",
    "turned_palette": "rotate_palette", "turned_rows": "row_rotation", "update_ahead": "lookahead_update",
    "walk_beam": "traverse_frustum", "WALK_DONE": "STACK_DONE", "walk_packet": "traverse_packet",
    "wanted_samples": "target_samples", "wanted_shot": "pending_screenshot", "waste_of": "split_potential",
    "weave": "interleave", "why_fixed": "read_only_reason", "with_sky": "infinite_light",
    "without_repeats": "deduplicate", "wrapped_texel": "texel",
}  # fmt: skip
HERE = "tests/test_words.py"
SUFFIXES = (".py", ".cu", ".h", ".frag", ".cb", ".toml", ".md", ".html", ".yml")


@cache
def texts() -> dict[str, str]:
    """The text of every file of the project that people read, by its path."""
    listed = run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    names = [name for name in listed if name.endswith(SUFFIXES) and name != HERE]
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in names if (ROOT / name).exists()}


# attributes of .flame files, spelled as the programs that write them do
FOREIGN = re.compile(r"\b(?:\w+_)?(?:centre_[xyz]|select_centre|perlin_centre)\b|\bcentre(?= = 0\.25, range| \+ range)")
SPELLED = re.compile(rf"(?<![A-Za-z])({'|'.join(SPELLING)})(?![A-Za-z])", re.IGNORECASE)  # also inside of names
NAMED = re.compile(rf"\b({'|'.join(NAMES)})\b")


@pytest.mark.parametrize(
    "words, pattern, every", [(SPELLING, SPELLED, r"[a-z]+"), (NAMES, NAMED, r"\w+")], ids=["spelling", "names"]
)
def test_no_retired_word_returns(words, pattern, every):
    found = []
    for name, text in texts().items():
        text = FOREIGN.sub("", text)
        if words.keys().isdisjoint(re.findall(every, text if words is NAMES else text.lower())):
            continue  # ten times as fast as the pattern, which tells the lines
        for number, line in enumerate(text.splitlines(), 1):
            for match in pattern.finditer(line):
                found.append(f"{name}:{number}: {match[1]} -> {words.get(match[1]) or words[match[1].lower()]}")
    assert not found, "\n".join(found[:40])


def test_retired_words_are_single_words():
    """So that the words of a text tell whether the patterns can match."""
    assert all(re.fullmatch("[a-z]+", word) for word in SPELLING) and all(re.fullmatch(r"\w+", word) for word in NAMES)
    assert SPELLED.search("my_colour2") and NAMED.search("a weave b") and not NAMED.search("weaves")


# Pronouns in the place of nouns, which a reader has to resolve. The cap falls with every file that is rewritten.
PRONOUNS = re.compile(r"\b(that of|those of|one of its own|of its own|of their own|of which|those that|that which)\b")
MAX_PRONOUNS = 12  # lines of renderer/ and shaders/


def test_pronouns_in_the_place_of_nouns_become_fewer():
    lines = [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts().items()
        if name.startswith(("renderer/", "shaders/"))
        for number, line in enumerate(text.splitlines(), 1)
        if PRONOUNS.search(line)
    ]
    assert len(lines) <= MAX_PRONOUNS, "\n".join(lines)
