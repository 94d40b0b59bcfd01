"""Rayfold: ray tracing, fractals and GPGPU passes, live in one window and headless. This module is the map.

Layers, each importing downwards only (tests/test_architecture.py):

    main.py                              the command line; imports what the command needs
    renderer/window/app/command.py window/           the window: live panels, controls, keys
    renderer/export/ bench/              files, frame rates; doctor.py: what this machine can do
    renderer/pictures/NAME.py            what a scene file's `picture = "NAME"` draws; tone.py: its 8-bit pixels
    renderer/raytracing/                 the ray tracer below its picture: settings, geometry, models, rays, kernels
    renderer/compute/ cdollar/ bvh.py    sums, products, band LU | the language C$ | acceleration structures
    renderer/bvh/bvh8.py            acceleration structures for processors without warps
    renderer/bvh/device_sah.py bvh_improve.py   trees of still scenes: split by costs and made better, on the device
    renderer/bvh/presplit.py               long thin triangles in parts, for such trees
    renderer/bvh/bvh4.py bvh_narrow.py   four-wide nodes | binary nodes of 32 bytes
    renderer/bvh/traversal.py                which walk is fastest for a tree and a class of rays
    renderer/bvh/instances.py            placed shapes under an upper tree
    renderer/flames/                     genome, .flame files, variations, kernels and development of the chaos game
    renderer/lightfields/                fields of camera arrays: reading them, apertures, depths at a few points
    renderer/scene/scene.py animation.py view.py mesh.py procedural.py microfacet.py image.py denoise.py progress.py
                                         plain data
    renderer/gltf/                       glTF files of strangers as plain data
    renderer/gpu/                        devices: the contract, CUDA, OpenCL, GL, the bridge between them

The two ground floors, plain data and devices, do not know each other.

The way of a frame: main parses the command and opens the devices; `pictures.load` turns an input into a Scene (all
errors of the user end here); `pictures.open_picture` compiles kernels; `picture.draw(settings, size, time)` leaves
linear float32 on the device, one more sample a call; tone mapping makes 8-bit pixels; the viewer shows them, export
writes them, bench stops after the drawing.
"""

__version__ = "0.2.0"
