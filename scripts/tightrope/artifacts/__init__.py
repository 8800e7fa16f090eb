"""Files between steps: written atomically, verified by checksum, or holding a failure.

- `files`: atomic writes, and reads whose errors name the file
- `content`: JSON with a digest of its content, and of the job that wrote it
- `manifest`, `manifest_types`: a folder as one artifact, and what it was made from
- `failures`: why a step has no output
- `packs`: a folder as one file, for storage that keeps single files
- `provenance`: digests of code, versions of libraries
"""
