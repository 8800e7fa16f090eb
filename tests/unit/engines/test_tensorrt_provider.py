"""ONNX Runtime's TensorRT provider, as far as it is seen without a GPU."""

from pathlib import Path

import pytest
from tightrope.engines.onnxruntime_gpu import load_tensorrt, providers_of
from tightrope.errors import WorkFailed
from tightrope.signature import of_texts

PROFILES = [[[1, 1], [1, 64], [8, 128]], [[1, 1], [16, 32], [16, 64]]]


def test_tensorrt_comes_before_cuda_with_one_profile_and_its_caches(tmp_path: Path) -> None:
    engine, state = tmp_path / "engine", tmp_path / "work"
    options = {"profiles": PROFILES}
    (name, settings), (other, cuda) = providers_of(engine, of_texts(), "fp16", options, state)
    assert (name, other) == ("TensorrtExecutionProvider", "CUDAExecutionProvider")
    assert settings == {
        **{"trt_engine_cache_enable": "True", "trt_engine_cache_path": str(engine)},
        **{"trt_timing_cache_enable": "True", "trt_timing_cache_path": str(state)},
        **{"device_id": "0", "trt_fp16_enable": "True"},
        "trt_profile_min_shapes": "input_ids:1x1,attention_mask:1x1",
        "trt_profile_opt_shapes": "input_ids:16x32,attention_mask:16x32",
        "trt_profile_max_shapes": "input_ids:16x128,attention_mask:16x128",
    }
    assert cuda == {"device_id": "0", "use_tf32": "0", "enable_cuda_graph": "False"}
    (_, loaded), _ = providers_of(engine, of_texts(), "fp32", options)
    assert loaded["trt_fp16_enable"] == "False"
    assert not [key for key in loaded if "timing" in key]


def test_a_tensorrt_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    library = tmp_path / "libonnxruntime_providers_tensorrt.so"
    library.write_bytes(b"\x7fELF\x00libcublas.so.13\x00libnvinfer.so.99\x00")
    with pytest.raises(WorkFailed) as caught:
        load_tensorrt(library)
    assert not caught.value.transient
    assert caught.value.reason == (
        "onnxruntime is linked to libnvinfer.so.99, which cannot be loaded: put the libraries of "
        "TensorRT 99 on LD_LIBRARY_PATH"
    )
