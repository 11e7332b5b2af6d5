import { once } from "node:events";
import { expect, test } from "vitest";
import { accountOf, currentAccount, loginEnvironment, OwnUser } from "../../../src/desktop/users.js";
import { SetupError } from "../../../src/errors.js";

test("an account that can't own a computer is refused with what to do about it", () => {
  expect(() => accountOf("no-such-user")).toThrow(SetupError);
  expect(() => accountOf("--help")).toThrow(/does not exist/);
  expect(() => accountOf("root")).toThrow(/never runs as root/);
});

test("a login's environment is the account's and holds nothing of this process's", () => {
  const account = { ...currentAccount(), home: "/" };
  const environment = loginEnvironment(account);
  expect(Object.keys(environment).sort()).toEqual(["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "USER"]);
  expect(environment).toMatchObject({ HOME: "/", LANG: "C.UTF-8", USER: account.name });
});

test("a program is started in the home of the user, with the user's environment and what is added to it", async () => {
  const user = new OwnUser({ ...currentAccount(), home: "/usr" }, { PATH: "/usr/bin:/bin", A: "1" });
  const child = user.spawn("sh", ["-c", 'echo "$PWD $A $B"'], { stdio: ["ignore", "pipe", "ignore"], env: { B: "2" } });
  let text = "";
  child.stdout?.on("data", (chunk) => {
    text += chunk;
  });
  await once(child, "close");
  expect(text).toBe("/usr 1 2\n");
  user.environment().A = "changed";
  expect(user.environment().A).toBe("1");
});
