import type { Log } from '#telemetry/log.ts'

type JailLimits = {
  readonly memoryBytesMax: number
  readonly processorSecondsMax: number
}

/** A command for a program that may take so much, open little, and write no file. */
export type Jail = (command: readonly string[], limits: JailLimits) => string[]

const openFilesMax = 64

/** Without `prlimit`, which not every system has, the program is held by its time alone. */
export function createJail(log: Pick<Log, 'warn'>): Jail {
  const prlimit = Bun.which('prlimit')
  if (prlimit === null) {
    log.warn('there is no prlimit, so the memory for reading a file is not limited')
    return (command) => [...command]
  }
  return (command, { memoryBytesMax, processorSecondsMax }) => [
    prlimit,
    `--data=${memoryBytesMax}`,
    `--cpu=${processorSecondsMax}:${processorSecondsMax + 1}`,
    `--nofile=${openFilesMax}`,
    '--fsize=0',
    '--core=0',
    ...command,
  ]
}
