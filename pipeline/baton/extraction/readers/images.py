"""PNG, JPEG and TIFF: every frame is a scanned page."""

from collections.abc import Iterator
from typing import Final

from PIL import Image, ImageOps, UnidentifiedImageError

from baton.extraction.jobs import Content, Job
from baton.extraction.outcomes import ReasonCode, Unreadable
from baton.extraction.readers.recognition import Recognition

_FORMATS: Final = ("PNG", "JPEG", "TIFF")
_LONG_SIDE: Final = 4_000
_SHORT_SIDE: Final = 1_000
_USUAL_DPI: Final = 200


def read(job: Job) -> Content:
    """Recognise every frame of an image.

    Raises:
        Unreadable: Damaged, too many pixels or too many frames.
    """
    recognition = Recognition(job)
    content = Content()
    try:
        for frame in _frames(job):
            content.pages.append(
                recognition.page(lambda frame=frame: prepare(frame), dpi=_USUAL_DPI)  # type: ignore[misc]
            )
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, ArithmeticError) as error:
        truncated = "truncated" in str(error)
        raise Unreadable(ReasonCode.TRUNCATED if truncated else ReasonCode.CORRUPT) from None
    except (IndexError, KeyError, TypeError, AttributeError):
        raise Unreadable(ReasonCode.CORRUPT) from None
    content.reason = recognition.reason
    return content


def prepare(image: Image.Image) -> Image.Image:
    """A grey, upright picture on white, of a size at which recognition is good and quick."""
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):
        # Sixteen bits a pixel: a plain conversion would turn all of it white.
        image = image.convert("I").point(lambda value: value / 256).convert("L")
    if image.mode in {"RGBA", "LA", "PA"} or "transparency" in image.info:
        layered = image.convert("RGBA")
        paper = Image.new("RGBA", layered.size, "white")
        image = Image.alpha_composite(paper, layered)
    grey = image.convert("L")
    longest = max(grey.size)
    if longest > _LONG_SIDE:
        grey.thumbnail((_LONG_SIDE, _LONG_SIDE))
    elif longest < _SHORT_SIDE:
        grey = grey.resize((grey.width * 2, grey.height * 2), Image.Resampling.LANCZOS)
    return grey


def _frames(job: Job) -> Iterator[Image.Image]:
    # The size is judged by the header, before a single pixel is unpacked.
    Image.MAX_IMAGE_PIXELS = None
    with Image.open(job.file, formats=_FORMATS) as image:
        number = 0
        while True:
            if image.width * image.height > job.limits.pixels:
                raise Unreadable(ReasonCode.IMAGE_TOO_LARGE)
            if number >= job.limits.pages:
                raise Unreadable(ReasonCode.TOO_MANY_PAGES)
            image.load()
            yield image
            number += 1
            try:
                image.seek(number)
            except EOFError:
                return
