/** Pseudo-random numbers that are the same in every run: a linear congruential generator. */
export function createDice(seed: number): { upTo(count: number): number } {
  let state = seed
  return {
    upTo(count) {
      state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
      return Math.floor((state / 4_294_967_296) * count)
    },
  }
}
