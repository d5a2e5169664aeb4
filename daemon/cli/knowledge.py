"""The command that shows what is known: the library's documents, and which help in a situation."""

from argparse import Namespace

from daemon.cli.arguments import MisuseError, load_given
from daemon.cli.terminal import Terminal, make_table
from daemon.host import detect_host
from knowledge.document import Document, names_of
from knowledge.library import Library, LibraryError, Query, is_for, make_index, scope_of
from operator_registry.fault import RegistryError

MISUSE = (MisuseError,)
FAULTS = (LibraryError, RegistryError, OSError)
_SHOWN = 10


def show_knowledge(args: Namespace, terminal: Terminal) -> int:
    """Show one document by its name, those that help with a query, or the index of all."""
    library = Library.load()
    words = " ".join(args.query)
    document = library.find_document(words)
    hardware = _names(library, args)
    if document is not None:
        _show(document, terminal)
    elif words or hardware or args.language or args.region:
        query = Query(
            text=words, language=args.language, hardware=hardware, regions=tuple(args.region)
        )
        return _show_found(library, query, terminal)
    elif terminal.as_json:
        terminal.tell({"documents": [_listed(each) for each in library.documents]})
    else:
        terminal.show_markdown(make_index(library).rstrip("\n"))
    return 0


def _names(library: Library, args: Namespace) -> tuple[str, ...]:
    """Return the names of the wanted device: one of the registry, or a word that documents know.

    Raises:
        MisuseError: Neither knows it.
    """
    if args.hardware is None:
        return ()
    registry = load_given(args.registry)
    name = detect_host().cpu if args.hardware == "cpu" else args.hardware
    if name in registry.hardware:
        return names_of(registry.hardware[name])
    if any(document.hardware and is_for(document, (name,)) for document in library.documents):
        return (name,)
    known = ", ".join(sorted(registry.hardware))
    msg = f"no document and no registry knows the hardware {name}; the registry has {known}"
    raise MisuseError(msg)


def _show_found(library: Library, query: Query, terminal: Terminal) -> int:
    """Show the documents that help, the best first; 1 where none does."""
    found = library.rank(query)[:_SHOWN]
    if terminal.as_json:
        listed = [{**_listed(match.document), "score": match.score} for match in found]
        terminal.tell({"documents": listed})
    elif found:
        table = make_table("document", "title", "for")
        for match in found:
            document = match.document
            table.add_row(document.name, document.title, scope_of(document))
        terminal.show(table)
        terminal.complain(f"read one: kernelevolve knowledge {found[0].document.name}")
    else:
        terminal.say("no document speaks of this")
    return 0 if found else 1


def _show(document: Document, terminal: Terminal) -> None:
    if terminal.as_json:
        terminal.tell(document)
        return
    sources = "\n".join(f"- {source}" for source in document.sources)
    text = f"# {document.title}\n\n{document.text}\nSources:\n\n{sources}"
    terminal.show_markdown(text)


def _listed(document: Document) -> dict[str, object]:
    return document.model_dump(mode="json", exclude={"text"})
