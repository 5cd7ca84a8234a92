"""Vectors of 512 bits for our own kernels.

LLVM prefers vectors of 256 bits on Intel's CPUs, because a program that uses few wider ones may lose more by a lower
clock rate than it gains. Here BLAS uses them for the matrix products anyway, and sweeps with 256 bits take 1.2 times as
long. A function attribute tells LLVM so. On CPUs without such vectors it has no effect.
"""

from __future__ import annotations

from typing import Any

try:
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import register_pass
    from numba.core.lowering import Lower
    from numba.core.typed_passes import NativeLowering
except ImportError:  # another version of numba: kernels are compiled as it sees fit
    WideCompiler: Any = None
else:

    class WideLower(Lower):  # type: ignore[misc]
        """numba's translation to LLVM's language, with the attribute."""

        def setup_function(self, *args: Any) -> None:
            """Declare the function."""
            super().setup_function(*args)
            set.add(self.function.attributes, '"prefer-vector-width"="512"')  # its own `add` knows no values

    @register_pass(mutates_CFG=True, analysis_only=False)
    class WideLowering(NativeLowering):  # type: ignore[misc]
        """The step of numba's compiler that translates."""

        _name = "wide_lowering"
        lowering_class = WideLower

    class WideCompiler(CompilerBase):  # type: ignore[misc,no-redef]
        """numba's compiler with this step."""

        def define_pipelines(self) -> list[Any]:
            """The steps."""
            steps = DefaultPassBuilder.define_nopython_pipeline(self.state)
            steps.passes = [(WideLowering if step is NativeLowering else step, what) for step, what in steps.passes]
            steps.finalize()
            return [steps]
