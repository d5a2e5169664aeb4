"""What another machine sent back, believed as far as it proves itself, and the folder made of it.

That machine ran foreign code. So no file of it is taken: the kernel's folder is written here, from
the candidate and the evidence, and the verdict is the one that our own judge finds in the evidence.
"""

from daemon.actions.parcel import ParcelError
from knowledge.evidence import Better, Evidence
from knowledge.verdict import judge
from operator_registry.record import Record
from optimizer.errors import KernelFolderError
from optimizer.job import OptimizeRequest, OptimizeResult, Result, VerifyRequest, VerifyResult
from optimizer.kernel import find_mismatch, make_kernel
from optimizer.kernel_page import write_kernel


def accept(result: Result, request: Record) -> Result:
    """Return a result with its folder where the request wants it.

    Raises:
        ParcelError: It is no answer to this request, or its evidence does not prove what it says.
    """
    if isinstance(request, VerifyRequest) and isinstance(result, VerifyResult):
        return result
    if isinstance(request, OptimizeRequest) and isinstance(result, OptimizeResult):
        return _accept_search(result, request)
    msg = f"a {type(result).__name__} is no answer to a {type(request).__name__}"
    raise ParcelError(msg)


def _accept_search(result: OptimizeResult, request: OptimizeRequest) -> OptimizeResult:
    asked = (request.operator.name, request.hardware.name)
    if (result.operator, result.hardware) != asked:
        msg = f"{result.operator} on {result.hardware} was not asked for"
        raise ParcelError(msg)
    if not isinstance(result.verdict, Better):
        return result.model_copy(update={"kernel_folder": None})
    if result.evidence is None or result.candidate is None:
        msg = "a kernel that is better came without its evidence"
        raise ParcelError(msg)
    if fault := find_fault(result.evidence, request):
        msg = f"the evidence does not prove what was asked: {fault}"
        raise ParcelError(msg)
    folder = request.out_folder.joinpath(*asked)
    kernel = make_kernel(
        request.operator, request.hardware, candidate=result.candidate, evidence=result.evidence
    )
    if fault := find_mismatch(kernel):
        raise ParcelError(fault)
    try:
        write_kernel(folder, kernel)
    except KernelFolderError as error:
        raise ParcelError(str(error)) from error
    return result.model_copy(update={"kernel_folder": folder})


def find_fault(evidence: Evidence, request: OptimizeRequest) -> str | None:
    """Return why evidence does not prove a gain for this request; None where it does."""
    if evidence.operator_digest != request.operator.digest:
        return "it is about another version of the operator"
    if (evidence.operator, evidence.hardware) != (request.operator.name, request.hardware.name):
        return f"it is about {evidence.operator} on {evidence.hardware}"
    if evidence.minimum_gain < request.minimum_gain or evidence.alpha > request.alpha:
        return "it was held to a lower standard"
    verdict = judge(evidence)
    return None if isinstance(verdict, Better) else verdict.reason
