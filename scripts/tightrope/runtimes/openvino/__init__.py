"""Code of the OpenVINO engine beside the engine itself."""
