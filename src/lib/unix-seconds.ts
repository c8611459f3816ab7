/** The time in whole seconds since 1970, as the protocols write it. */
export function unixSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1000)
}
