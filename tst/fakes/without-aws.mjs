/** Loaded into a process before its program: whoever imports a package of AWS there fails. */
import { registerHooks } from "node:module";

registerHooks({
  resolve(specifier, context, next) {
    if (specifier.startsWith("@aws-sdk/")) throw new Error("AWS's library was wanted");
    return next(specifier, context);
  },
});
