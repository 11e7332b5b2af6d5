import { SPACES_URN } from "../../protocol/computer.js";
import { expectSame, type FullCheck } from "../check.js";

/** P3: what is seen lies where the frame says. */
export const geometryChecks: FullCheck[] = [
  {
    id: "P3",
    name: "single pixels of known colours, odd and even, are where they were drawn",
    level: "full",
    async run({ session, layout }) {
      const { picture, display } = await session.shot();
      const seen = layout.dots.map(([x, y]) => [
        x,
        y,
        picture.at(Math.floor(x * display.scale), Math.floor(y * display.scale)),
      ]);
      expectSame("what is seen", seen, layout.dots);
    },
  },
  {
    id: "P3",
    name: "regions in norm space begin on the same pixels",
    level: "full",
    needs: [SPACES_URN],
    async run({ session, layout }) {
      const { frame_id, width, height, display } = await session.shot();
      const seen: typeof layout.dots = [];
      for (const [x, y] of layout.dots) {
        const [left, top] = [Math.floor(x * display.scale), Math.floor(y * display.scale)];
        const across = (pixel: number) => (pixel * 1000) / width;
        const down = (pixel: number) => (pixel * 1000) / height;
        const region = [across(left + 0.5), down(top + 0.5), across(left + 3.5), down(top + 3.5)];
        const { picture } = await session.shot({ region, frame_id, space: "norm", norm_scale: 1000 });
        seen.push([x, y, picture.at(0, 0) ?? ""]);
      }
      expectSame("what is seen", seen, layout.dots);
    },
  },
];
