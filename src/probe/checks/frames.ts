import type { BasicCheck } from "../check.js";
import { Difference, expectSame, expectThat } from "../check.js";
import type { Shot } from "../session.js";

/** How many frames are kept. */
const KEPT = 64;

/** P2: frames. Regions of them are here too, as far as nothing on the screen has to be known for it. */
export const frameChecks: BasicCheck[] = [
  {
    id: "P2",
    name: "a screenshot is native: its image, its frame and the display agree",
    level: "basic",
    async run(driver) {
      const { picture, width, height, display } = await (await driver.session()).shot();
      expectSame("the image's size", [picture.width, picture.height], [width, height]);
      const native = [Math.round(display.width * display.scale), Math.round(display.height * display.scale)];
      expectSame("the frame's size", [width, height], native);
      expectSame("the image", [picture.mimeType, picture.format], ["image/png", "png"]);
    },
  },
  {
    id: "P2",
    name: "each screenshot is a new frame, f and a number that grows, with its time in UTC",
    level: "basic",
    async run(driver) {
      const session = await driver.session();
      const [first, second] = [await session.shot(), await session.shot()];
      const numbers = [first, second].map(({ frame_id }) => Number(/^f([0-9]+)$/.exec(frame_id)?.[1]));
      expectThat(
        (numbers[1] ?? 0) > (numbers[0] ?? Number.NaN),
        `the frames are ${first.frame_id}, ${second.frame_id}`,
      );
      for (const { captured_at } of [first, second]) {
        expectThat(/(Z|\+00:00)$/.test(captured_at), `captured_at is ${captured_at}`);
      }
      const [before, after] = [first, second].map(({ captured_at }) => Date.parse(captured_at));
      expectThat((before ?? 0) <= (after ?? Number.NaN), `${first.captured_at} came before ${second.captured_at}`);
    },
  },
  {
    id: "P2",
    name: "format jpeg answers a JPEG of the same size",
    level: "basic",
    async run(driver) {
      const { picture, width, height } = await (await driver.session()).shot({ format: "jpeg", quality: 60 });
      expectSame("the image", [picture.mimeType, picture.format], ["image/jpeg", "jpeg"]);
      expectSame("its size", [picture.width, picture.height], [width, height]);
    },
  },
  {
    id: "P2",
    name: "a region is a native crop of its frame",
    level: "basic",
    async run(driver) {
      const session = await driver.session();
      const whole = await session.shot();
      const [x, y] = [Math.floor(whole.width / 4), Math.floor(whole.height / 4)];
      const box = [x, y, x + Math.floor(whole.width / 3), y + Math.floor(whole.height / 3)];
      const crop = await session.shot({ region: box, frame_id: whole.frame_id });
      expectCrop(crop, whole, whole, box);
    },
  },
  {
    id: "P2",
    name: "a crop of a crop is a native crop of the screen",
    level: "basic",
    async run(driver) {
      const session = await driver.session();
      const whole = await session.shot();
      const [w, h] = [whole.width, whole.height];
      const outer = [Math.floor(w / 5), Math.floor(h / 5), Math.floor(w / 5) + Math.floor(w / 2), h];
      const crop = await session.shot({ region: outer, frame_id: whole.frame_id });
      const inner = [7, 5, Math.floor(crop.width / 2), crop.height];
      const second = await session.shot({ region: inner, frame_id: crop.frame_id });
      const [left, top] = [outer[0] as number, outer[1] as number];
      const onScreen = [left + 7, top + 5, left + Math.floor(crop.width / 2), top + crop.height];
      expectCrop(second, crop, whole, onScreen);
      // Without a frame the latest is meant, which is the crop.
      const third = await session.shot({ region: [1, 1, 3, 3] });
      expectCrop(third, second, whole, [left + 8, top + 6, left + 10, top + 8]);
    },
  },
  {
    id: "P2",
    name: "a region begins at the pixel it begins in and ends at the end of the one it ends in",
    level: "basic",
    async run(driver) {
      const session = await driver.session();
      const whole = await session.shot();
      const { frame_id } = whole;
      expectCrop(await session.shot({ region: [10.2, 20.9, 12.1, 23], frame_id }), whole, whole, [10, 20, 13, 23]);
      const norm = { frame_id, space: "norm" };
      // On a square of 100 pixels 290 of 1000 is pixel 29, however it is multiplied.
      const square = await session.shot({ region: [0, 0, 100, 100], frame_id });
      const part = { ...norm, frame_id: square.frame_id, region: [290, 290, 1000, 1000], norm_scale: 1000 };
      expectCrop(await session.shot(part), square, whole, [29, 29, 100, 100]);
      const { width, height } = whole;
      const corner = await session.shot({ ...norm, region: [999_999, 999_999, 1e6, 1e6], norm_scale: 1_000_000 });
      expectCrop(corner, whole, whole, [width - 1, height - 1, width, height]);
      expectCrop(await session.shot({ ...norm, region: [0, 0, 1, 1], norm_scale: 1 }), whole, whole, [
        0,
        0,
        width,
        height,
      ]);
    },
  },
  {
    id: "P2",
    name: "the last 64 frames are kept: the 65th makes the first unknown",
    level: "basic",
    async run(driver) {
      const session = await driver.session();
      const first = await session.shot();
      const small = { region: [0, 0, 2, 2], frame_id: first.frame_id };
      const { frame_id } = await session.shot(small);
      for (let kept = 2; kept < KEPT; kept += 1)
        await session.ok("computer_screenshot", { region: [0, 0, 1, 1], frame_id });
      // The 65th is cut from the first, which is there until then.
      await session.ok("computer_screenshot", small);
      await session.refused("computer_screenshot", small, "stale_frame");
      await session.ok("computer_screenshot", { region: [0, 0, 1, 1], frame_id });
    },
  },
  {
    id: "P2",
    name: "a frame named by its id is anyone's",
    level: "basic",
    async run(driver) {
      const whole = await (await driver.session()).shot();
      const other = await driver.session();
      const crop = await other.shot({ region: [3, 3, 9, 9], frame_id: whole.frame_id });
      expectCrop(crop, whole, whole, [3, 3, 9, 9]);
    },
  },
  {
    id: "P2",
    name: "each session has a latest frame of its own",
    level: "basic",
    async run(driver) {
      await (await driver.session()).shot();
      const fresh = await driver.session();
      const result = await fresh.call("computer_screenshot", { region: [0, 0, 4, 4] });
      if (result.isError !== true) throw new Difference(ONE_CALLER);
      expectSame("the code without a frame of one's own", result.structuredContent?.code, "stale_frame");
    },
  },
];

/** The published driver does so, by its own rules. */
export const ONE_CALLER =
  "it takes all sessions for one caller, as the published driver does: they share the latest frame and held keys, and " +
  "none of their input is another's";

function expectCrop(crop: Shot, parent: Shot, whole: Shot, [left = 0, top = 0, right = 0, bottom = 0]: number[]): void {
  const box = `[${left}, ${top}, ${right}, ${bottom}]`;
  expectSame(`the size of ${box}`, [crop.width, crop.height], [right - left, bottom - top]);
  expectSame(`the image's size of ${box}`, [crop.picture.width, crop.picture.height], [right - left, bottom - top]);
  expectSame("the parent", crop.parent_frame_id, parent.frame_id);
  expectSame("the display", crop.display, whole.display);
  const unlike = crop.picture.firstUnlike(whole.picture, left, top);
  expectThat(unlike === undefined, `pixel ${JSON.stringify(unlike)} of ${box} isn't its frame's`);
}
