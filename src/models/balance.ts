import type { Target } from '#inference/generate.ts'

/**
 * The targets in the order in which they are tried. By chance each is first as often as its weight
 * says; with an affinity (whose requests should meet the same upstream, which still has their prompt
 * in its cache) the order is always the same, and a target that comes or goes moves only those
 * requests that it wins or leaves behind: rendezvous hashing.
 */
export function balance(
  targets: readonly Target[],
  weightOf: (target: Target) => number,
  affinity: string | null,
): readonly Target[] {
  const chanceOf = ({ upstream }: Target) =>
    affinity === null ? Math.random() : hashed(`${affinity}\0${upstream.name}`)
  return targets
    .map((target) => ({ target, rank: -Math.log(1 - chanceOf(target)) / weightOf(target) }))
    .sort((left, right) => left.rank - right.rank)
    .map(({ target }) => target)
}

/** From 0 up to but not 1, the same in every process. */
function hashed(text: string): number {
  return Number(Bun.hash.wyhash(text) >> 11n) / 2 ** 53
}
