import type { Target } from '#inference/upstream.ts'

/**
 * Orders targets for an attempt. Without an affinity, each is first with a probability proportional to
 * its weight. With an affinity (a prompt cache key) the order is stable by rendezvous hashing: adding
 * or removing a target moves only the requests of that target.
 */
export function balance(
  targets: readonly Target[],
  weightOf: (target: Target) => number,
  affinity: string | null,
): readonly Target[] {
  if (targets.length < 2) return targets
  const scoreOf = ({ upstream }: Target) =>
    affinity === null ? Math.random() : hashToUnit(`${affinity}\0${upstream.name}`)
  return targets
    .map((target) => ({ target, rank: -Math.log(1 - scoreOf(target)) / weightOf(target) }))
    .sort((left, right) => left.rank - right.rank)
    .map(({ target }) => target)
}

/** From 0 up to but not 1, the same in every process. */
function hashToUnit(text: string): number {
  return Number(Bun.hash.wyhash(text) >> 11n) / 2 ** 53
}
