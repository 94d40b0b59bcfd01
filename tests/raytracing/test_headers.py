"""Each header of the ray tracer includes what it uses: it compiles alone, behind the generated text that it names."""

import pytest

from renderer.formats import gltf
from renderer.gpu.cuda import nvrtc
from renderer.gpu.kernel_source import GeneratedSource, preprocess
from renderer.paths import SHADERS
from renderer.raytracing import microfacet, schedules
from renderer.raytracing.kernels import compile_constants, kernel_source, material_source
from renderer.raytracing.lights.light_buffer import LightSampler
from renderer.raytracing.material_files import SIMD8_KINDS
from renderer.raytracing.settings import Material, Settings
from renderer.raytracing.textures import TextureArrays
from tests.drivers import check_for_cuda

# parts of another text: the schedules in raytrace.cu, texture.h that is compiled again for eight lanes, caustics.h
PARTS = {"fused_scalar.h", "first_bounce.h", "bounces.h", "wavefront.h", "surface_textures.h", "mesh_caustics.h"}
HEADERS = sorted(
    path.relative_to(SHADERS).as_posix()
    for path in (SHADERS / "raytracing").rglob("*.h")
    if path.name not in PARTS and path.parent.name != "packets"
)
BEFORE_DISPATCH = ("raytracing/materials/", "raytracing/lobes/", "raytracing/microfacet.h", "raytracing/surface.h")
FEATURES = (
    "DISTANCE_FIELDS",
    "NON_AREA_LIGHTS",
    "ENVIRONMENT",
    "VOLUMES",
    "EQUIANGULAR",
    "LIGHT_PROFILES",
    "LIGHT_TREE",
    "SHADOW_CATCHER",
)


def constants(textured: bool) -> dict[str, object]:
    """The constants of a scene with every material and light, with textures or without."""
    kinds = ("glass", "principled", "metallic", "conductor", "diffuse")
    materials = tuple(
        Material(k, k, roughness=0.5, transmission=0.5, sheen_color=(0.5,) * 3, clearcoat=0.5, anisotropy=0.5,
                 iridescence=0.5, thickness=1.0, dispersion=0.3, diffuse_transmission=0.2) for k in kinds
    )  # fmt: skip
    out = compile_constants(Settings(schedule="wavefront", materials=materials), True)
    out |= dict.fromkeys(FEATURES, 1) | {"GROUP_SIZE": 64}
    if not textured:
        return out
    arrays = TextureArrays([([gltf.Material()], [])])
    return out | arrays.constants | {"TEXTURED": 1, "FLOAT_TEXTURES": 1, "ALPHA_TEST": 1, "FLOAT4S_PER_PRIMITIVE": 6}


@pytest.fixture
def cuda_compiler():
    """Skips where NVRTC is not installed (the extra `cuda`): no CUDA text can be compiled there."""
    if missing := nvrtc.why_missing():
        pytest.skip(missing)


@pytest.mark.usefixtures("cuda_compiler")
@pytest.mark.parametrize("header", HEADERS)
def test_a_header_compiles_alone(header):
    before = material_source()
    if header.startswith(BEFORE_DISPATCH):
        numbers = "".join(f"#define SIMD8_{kind.upper()} {i}.0f\n" for i, kind in enumerate(SIMD8_KINDS, 1))
        before = numbers + microfacet.table_source()
    source = GeneratedSource("alone", f'{before}#include "{header}"\n')
    textured = header.startswith("raytracing/textures/")
    check_for_cuda(preprocess(source, **constants(textured)), strict=True)


@pytest.mark.usefixtures("cuda_compiler")
def test_caustics_of_meshes_compile_with_the_header_that_holds_them():
    source = GeneratedSource("alone", f'{material_source()}#include "raytracing/lights/caustics.h"\n')
    features = constants(False) | {"CAUSTICS": 1, "CAUSTIC_MESHES": 1}
    text = preprocess(source, **features)
    assert "cross_mesh" in str(text)
    check_for_cuda(text, strict=True)


@pytest.mark.usefixtures("cuda_compiler")
def test_bounces_of_a_plain_scene_compile_for_cuda():
    """The kernel of GPUs that traces, shades and connects; `make test-all` compiles programs of richer scenes."""
    settings = Settings(schedule="wavefront", materials=(Material("m"),))
    more = LightSampler.usual_constants | {"PART": schedules.PARTS[schedules.BOUNCES], "GROUP_SIZE": 128}
    text = preprocess(kernel_source(), **compile_constants(settings, True) | more)
    assert nvrtc.compile_cubin(text, "sm_90", strict=True)
