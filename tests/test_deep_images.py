"""Images of the deep experiment: data sets, networks, and features that survive an interruption."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.deep

ROOT = Path(__file__).parents[1]
if not (ROOT / "experiments" / "deep_ensembles").is_dir():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
torch = pytest.importorskip("torch")
pytest.importorskip("PIL")
sys.path.insert(0, str(ROOT))

from experiments.deep_ensembles import images as folders  # noqa: E402
from experiments.deep_ensembles import networks  # noqa: E402
from experiments.deep_ensembles.downloads import ArraysOnly, DownloadError, unpacked  # noqa: E402
from experiments.deep_ensembles.images import PAIRS, read_square  # noqa: E402
from experiments.deep_ensembles.networks import cached_features, extract  # noqa: E402
from PIL import Image  # noqa: E402
from torch.nn import functional  # noqa: E402

import hullcal as hc  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def or_skip(load, *arguments):
    """Real data and weights, unless they can neither be found nor fetched."""
    try:
        return load(*arguments)
    except DownloadError as error:
        pytest.skip(f"the registry cannot be reached: {error}")


@pytest.fixture(scope="module")
def mobile():
    return or_skip(networks.MobileNetV2.pretrained)


@pytest.fixture(scope="module")
def trunk():
    return or_skip(networks.VGG16Trunk.pretrained)


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (10, 8, 8, 3), dtype=np.uint8)


class Small(torch.nn.Module):
    """A network of the same kind that takes no time; it may fail after some batches."""

    def __init__(self, seed=0, fail_after=None):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, 5, 3, 2), torch.nn.BatchNorm2d(5))
        for parameter in self.layers.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator)
        self.layers[1].running_mean.data = torch.randn(5, generator=generator)
        self.layers[1].running_var.data = torch.rand(5, generator=generator) + 0.5
        # Shared by the copies that `extract` makes, so that they count together.
        self.calls = Count()
        self.fail_after = fail_after

    def forward(self, x):
        self.calls.n += 1
        if self.fail_after is not None and self.calls.n > self.fail_after:
            raise KeyboardInterrupt
        return self.layers(x).mean(dim=(2, 3))


class Count:
    n = 0

    def __deepcopy__(self, memo):
        return self


def picture(path, colour, size=(9, 7)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)


# CIFAR-10


def test_cifar_with_other_pixels_is_refused(tmp_path, monkeypatch):
    Image.new("RGB", (1024, 2)).save(tmp_path / "test_batch.png")
    monkeypatch.setattr(folders, "unpacked", lambda name: tmp_path)
    with pytest.raises(hc.InvalidInputError, match="test images with the md5 6d27"):
        folders.cifar10("test")


# Networks


def test_networks_have_the_number_of_parameters_of_the_originals():
    for network, count in (
        (networks.MobileNetV2(), 3_504_872),
        (networks.VGG16Trunk(), 14_714_688),
    ):
        assert sum(parameter.numel() for parameter in network.parameters()) == count


def test_mobilenet_equals_a_transcription_that_walks_through_the_stored_weights(mobile):
    weights = mobile.state_dict()

    def normalised(x, convolution, norm, stride=1, groups=1):
        kernel = weights[f"{convolution}.weight"]
        x = functional.conv2d(x, kernel, None, stride, kernel.shape[-1] // 2, 1, groups)
        mean, variance = (weights[f"{norm}.running_{what}"] for what in ("mean", "var"))
        scale = weights[f"{norm}.weight"] / (variance + 1e-5).sqrt()
        shift = weights[f"{norm}.bias"] - mean * scale
        return x * scale[:, None, None] + shift[:, None, None]

    # Where the size halves, in the numbering of Table 2 laid out in a row.
    strides = {2: 2, 4: 2, 7: 2, 14: 2}
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    x = normalised(images, "features.0.0", "features.0.1", stride=2).clamp(0, 6)
    for block in range(1, 18):
        name, before, last = f"features.{block}.conv", x, 2
        if block > 1:
            x, last = normalised(x, f"{name}.0.0", f"{name}.0.1").clamp(0, 6), 3
        depthwise = f"{name}.{last - 2}"
        stride = strides.get(block, 1)
        x = normalised(x, f"{depthwise}.0", f"{depthwise}.1", stride, x.shape[1]).clamp(0, 6)
        x = normalised(x, f"{name}.{last - 1}", f"{name}.{last}")
        if x.shape == before.shape:
            x = x + before
    x = normalised(x, "features.18.0", "features.18.1").clamp(0, 6).mean(dim=(2, 3))
    expected = x @ weights["classifier.1.weight"].T + weights["classifier.1.bias"]
    with torch.inference_mode():
        torch.testing.assert_close(mobile(images), expected, rtol=1e-4, atol=1e-4)


def test_the_trunk_of_vgg_equals_a_transcription_with_the_stored_kernels(trunk):
    with (or_skip(unpacked, "vgg16_trunk") / "vgg16.ckpt").open("rb") as file:
        layers = ArraysOnly(file).load()["VGG16_0"]
    images = torch.randn(2, 3, 40, 40, generator=torch.Generator().manual_seed(2))
    x = images
    for k in range(13):
        kernel = torch.tensor(np.array(layers[f"Conv_{k}"]["kernel"]))  # height, width, in, out
        bias = torch.tensor(np.array(layers[f"Conv_{k}"]["bias"]))
        padded = functional.pad(x, (1, 1, 1, 1))
        height, width = x.shape[2:]
        x = bias[:, None, None] + sum(
            torch.einsum("nihw,io->nohw", padded[:, :, a : a + height, b : b + width], kernel[a, b])
            for a in range(3)
            for b in range(3)
        )
        x = x.relu()
        if k in (1, 3, 6, 9, 12):
            even = x[:, :, : height // 2 * 2, : width // 2 * 2]
            x = even.unflatten(3, (-1, 2)).unflatten(2, (-1, 2)).amax(dim=(3, 5))
    expected = x.mean(dim=(2, 3))
    with torch.inference_mode():
        found = trunk(images)
    assert found.shape == (2, 512)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_a_network_prepared_for_speed_says_the_same(mobile):
    images = torch.randn(4, 3, 96, 96, generator=torch.Generator().manual_seed(3))
    before = {name: value.clone() for name, value in mobile.state_dict().items()}
    fast = networks.prepared(mobile)
    kinds = [type(layer) for layer in fast.modules()]
    assert torch.nn.BatchNorm2d not in kinds
    with torch.inference_mode():
        torch.testing.assert_close(fast(images), mobile(images), rtol=0, atol=1e-4)
    assert all(torch.equal(before[name], value) for name, value in mobile.state_dict().items())


class Pixels(torch.nn.Module):
    """Gives the pixels back, to see what a network sees."""

    def forward(self, x):
        return x.flatten(1)


def test_what_a_network_sees_is_centred_and_scaled_by_the_figures_of_imagenet():
    grey = np.full((1, 32, 32, 3), 51, np.uint8)
    seen = extract(Pixels(), grey, 32).reshape(3, -1)
    by_hand = [(0.2 - 0.485) / 0.229, (0.2 - 0.456) / 0.224, (0.2 - 0.406) / 0.225]
    np.testing.assert_allclose(seen, np.repeat(by_hand, 1024).reshape(3, -1), rtol=1e-3)


@pytest.mark.parametrize("side", [16, 80])
def test_arrays_are_resized_as_pillow_does(side):
    array = np.random.default_rng(4).integers(0, 256, (1, side, side, 3), dtype=np.uint8)
    seen = networks.seen(torch.from_numpy(array), 40)[0].numpy()
    mean, deviation = (np.array(c)[:, None, None] for c in (networks.MEAN, networks.DEVIATION))
    square = Image.fromarray(array[0]).resize((40, 40), Image.Resampling.BILINEAR)
    # Pillow rounds to whole numbers, once for each direction.
    pixels = 255 * (seen * deviation + mean)
    np.testing.assert_allclose(pixels, np.asarray(square).transpose(2, 0, 1), atol=1.1)


def test_outputs_that_do_not_fit_are_refused(images):
    network = Small()
    network.layers[1].bias.data += 1e6
    images.flags.writeable = False  # as those of a memory map are
    with pytest.raises(hc.InvalidInputError, match="50 that do not"):
        extract(network, images, 32)


# The cache of features


def test_an_interrupted_extraction_goes_on_and_gives_the_same_bytes(images, tmp_path):
    settings = {"size": 32, "rows_per_block": 3}
    whole = cached_features("a", Small, images, tmp_path / "whole", **settings)
    broken = tmp_path / "broken"
    with pytest.raises(KeyboardInterrupt):
        cached_features("a", lambda: Small(fail_after=2), images, broken, **settings)
    rest = Small()
    found = cached_features("a", lambda: rest, images, broken, **settings)
    assert found.tobytes() == whole.tobytes()
    assert rest.calls.n == 2  # of four blocks, two were there
    np.testing.assert_allclose(found, extract(Small(), images, 32), atol=2e-3)


def test_features_of_other_images_weights_or_sizes_are_not_taken_for_these(images, tmp_path):
    for factory, some, size in (
        (Small, images, 32),
        (lambda: Small(seed=1), images, 32),
        (Small, images[::-1], 32),
        (Small, images, 40),
    ):
        found = cached_features("a", factory, some, tmp_path, size=size)
        np.testing.assert_array_equal(found, extract(factory(), some, size))


# Folders of images


def test_a_folder_gives_its_sub_folders_as_classes_in_order(tmp_path):
    picture(tmp_path / "zebra" / "1.png", "red")
    picture(tmp_path / "ant" / "b.JPG", "green")
    picture(tmp_path / "ant" / "a.jpeg", "blue")
    (tmp_path / "ant" / "notes.txt").write_text("no image")
    (tmp_path / ".hidden").mkdir()
    files = folders.from_folder(tmp_path)
    assert files.classes == ("ant", "zebra")
    assert files.labels.tolist() == [0, 0, 1]
    assert [path.name for path in files.paths] == ["a.jpeg", "b.JPG", "1.png"]
    assert files[np.array([2])].labels.tolist() == [1]


def test_files_are_rows_of_an_array_that_are_read_late(tmp_path, monkeypatch):
    arrays = np.random.default_rng(5).integers(0, 256, (5, 40, 32, 3), dtype=np.uint8)
    (tmp_path / "only").mkdir()
    for i, array in enumerate(arrays):
        Image.fromarray(array).save(tmp_path / "only" / f"{i}.png")
    files = replace(folders.from_folder(tmp_path), pixels=36)
    squares = np.stack(
        [np.asarray(Image.fromarray(a).resize((36, 36), Image.Resampling.BILINEAR)) for a in arrays]
    )
    np.testing.assert_array_equal(np.asarray(files), squares)
    chosen = np.array([4, 2, 2])
    np.testing.assert_array_equal(files[chosen], squares[chosen])
    np.testing.assert_array_equal(files[:4][3:], squares[3:4])
    np.testing.assert_array_equal(files[3], squares[3])
    expected = extract(Small(), squares, 36)
    np.testing.assert_array_equal(extract(Small(), files, 36), expected)
    cached = cached_features("f", Small, files, tmp_path / "c", size=36, rows_per_block=2)
    np.testing.assert_allclose(cached, expected, atol=2e-3)
    monkeypatch.setattr(folders, "read_square", None)
    assert len(files[chosen][:2]) == 2


def test_greys_palettes_and_transparency_become_rgb(tmp_path):
    for name, image in {
        "grey.png": Image.new("L", (4, 4), 100),
        "clear.png": Image.new("RGBA", (4, 4), (10, 20, 30, 128)),
        "cmyk.jpg": Image.new("CMYK", (4, 4), (0, 0, 0, 0)),
    }.items():
        image.save(tmp_path / name)
    palette = Image.new("P", (4, 4), 1)
    palette.putpalette([0, 0, 0, 50, 60, 70])
    palette.save(tmp_path / "palette.png", transparency=b"\x00\x80")
    by_hand = {
        **{"grey.png": (100, 100, 100), "clear.png": (10, 20, 30)},
        **{"cmyk.jpg": (255, 255, 255), "palette.png": (50, 60, 70)},
    }
    for name, colour in by_hand.items():
        assert (read_square(tmp_path / name, 2) == colour).all(), name


def test_pixels_of_sixteen_bits_are_refused_rather_than_clipped(tmp_path):
    Image.fromarray(np.full((4, 4), 4000, np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(hc.InvalidInputError, match=r"deep\.png.*more than 8 bits"):
        read_square(tmp_path / "deep.png", 2)


@pytest.mark.parametrize("name", ["torn", "empty"])
def test_a_damaged_file_is_named_before_any_work(name, tmp_path):
    noise = np.random.default_rng(6).integers(0, 256, (50, 50, 3), dtype=np.uint8)
    (tmp_path / "data" / "ant").mkdir(parents=True)
    for each in ("fine", name):
        Image.fromarray(noise).save(tmp_path / "data" / "ant" / f"{each}.png")
    damaged = tmp_path / "data" / "ant" / f"{name}.png"
    damaged.write_bytes(damaged.read_bytes()[:1000] if name == "torn" else b"")
    files, network = folders.from_folder(tmp_path / "data"), Small(fail_after=0)
    with pytest.raises(hc.InvalidInputError, match=rf"{name}\.png"):
        cached_features("a", lambda: network, files, tmp_path / "cache", size=32)
    assert network.calls.n == 0


def test_a_folder_without_classes_or_a_class_without_images_is_refused(tmp_path):
    with pytest.raises(hc.InvalidInputError, match="exists"):
        folders.from_folder(tmp_path / "nowhere")
    picture(tmp_path / "loose.jpg", "red")
    with pytest.raises(hc.InvalidInputError, match="without folders"):
        folders.from_folder(tmp_path)
    (tmp_path / "vacant").mkdir()
    with pytest.raises(hc.InvalidInputError, match="with none in vacant"):
        folders.from_folder(tmp_path)


def test_caltech_101_has_no_background_and_pairs_are_one_class(tmp_path):
    pairs = [name for pair in PAIRS.values() for name in pair]
    for name in [*pairs, "BACKGROUND_Google", "ant", "cup"]:
        picture(tmp_path / f"caltech101/101_ObjectCategories/{name}/image_0001.jpg", "red")
    for path in ("caltech101/101_ObjectCategories", "caltech101", "."):
        files = folders.caltech("caltech101", tmp_path / path)
        assert files.classes == ("Faces", "ant", "cougar", "crocodile", "cup", "flamingo")
        assert len(files) == 10
    for path, label in zip(files.paths, files.labels, strict=True):
        assert path.parent.name.startswith(files.classes[label])


def test_caltech_256_has_no_clutter_and_passes_over_folders_within(tmp_path):
    for name in ("257.clutter", "002.american-flag", "001.ak47"):
        picture(tmp_path / "256_ObjectCategories" / name / "001_0001.jpg", "red")
    picture(tmp_path / "256_ObjectCategories" / "001.ak47" / "inner" / "x.jpg", "red")
    files = folders.caltech("caltech256", tmp_path)
    assert files.classes == ("001.ak47", "002.american-flag")
    assert files.labels.tolist() == [0, 1]


def plant(folder, number, species):
    picture(folder / f"{number}.jpg", "green")
    (folder / f"{number}.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<Image><ObservationId>7</ObservationId>'
        f"<MediaId>{number}</MediaId><Vote>4</Vote><Content>Leaf</Content><ClassId>{species}</ClassId>"
        "<Family>Rosaceae</Family><Genus>Prunus</Genus><Species>Prunus spinosa L.</Species></Image>\n"
    )


def test_plantclef_takes_species_from_the_records_and_one_alphabet_for_both_parts(tmp_path):
    train = tmp_path / "PlantCLEF2015TrainingData" / "train"
    test = tmp_path / "PlantCLEF2015TestDataWithAnnotations"
    for folder, number, species in [
        *[(train, 10, 1002), (train, 9, 30), (test, 3, 1002), (test, 4, 405)],
    ]:
        plant(folder, number, species)
    (train / "77.xml").write_text("<Image><ClassId>5</ClassId></Image>")  # its image is missing
    learned, tested = folders.plantclef2015(tmp_path)
    assert learned.classes == tested.classes == ("30", "405", "1002")
    assert [path.name for path in learned.paths] == ["9.jpg", "10.jpg"]
    assert (learned.labels.tolist(), tested.labels.tolist()) == ([0, 2], [2, 1])


@pytest.mark.parametrize("record", [None, "<Image><MediaId>2</MediaId></Image>", "<Image>"])
def test_a_plant_without_a_species_is_named(record, tmp_path):
    plant(tmp_path / "train", 1, 8)
    plant(tmp_path / "test", 2, 8)
    file = tmp_path / "test" / "2.xml"
    file.unlink()
    if record is not None:
        file.write_text(record)
    with pytest.raises(hc.InvalidInputError, match=r"2\.xml"):
        folders.plantclef2015(tmp_path)


# Features that were computed before


@pytest.mark.parametrize(("network", "width"), [("MOB", 1000), ("VGG", 512)])
def test_stored_features_of_caltech_have_97_classes(network, width):
    if not folders.stored_features(network).is_file():
        pytest.skip("the feature files are not here")
    features, labels, classes = folders.caltech101_features(network)
    assert (features.shape, features.dtype) == ((8677, width), np.float16)
    assert len(classes) == len(set(labels.tolist())) == 97


def test_absent_features_say_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("HULLCAL_DATA", str(tmp_path))
    with pytest.raises(hc.InvalidInputError, match=r"vgg16trunk_128px.*name the images by"):
        folders.caltech101_features("VGG")
