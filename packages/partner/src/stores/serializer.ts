/** Runs functions of the same name one after the other, in the order of the calls. */
export function serializer(): <Result>(name: string, run: () => Promise<Result>) => Promise<Result> {
  const last = new Map<string, Promise<unknown>>();
  return async (name, run) => {
    const before = last.get(name);
    const mine = before === undefined ? run() : before.then(run, run);
    last.set(name, mine);
    try {
      return await mine;
    } finally {
      if (last.get(name) === mine) last.delete(name);
    }
  };
}
