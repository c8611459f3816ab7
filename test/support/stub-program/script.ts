import { join } from 'node:path'

export type StubScript = {
  sampleRateHz: number
  framed: boolean
  readyAfterMs: number
  atStart: 'ready' | 'exit' | 'silence' | 'refuse'
  /** How long it thinks about a second of audio. */
  msPerSecond: number
  /** The audio after which it misbehaves, once. */
  breaksAtMs: number | null
  breaksBy:
    | 'crash'
    | 'exit'
    | 'stall'
    | 'garbage'
    | 'malformed'
    | 'endless-line'
    | 'limit'
    | 'error'
    | 'done'
  atEnd: 'done' | 'exit' | 'crash' | 'hang' | 'done-and-stay'
  ignoresTerm: boolean
  errorLines: number
  /** Gets a line with the process id of every program that starts. */
  startsFile: string
}

const wellBehaved: StubScript = {
  sampleRateHz: 16_000,
  framed: false,
  readyAfterMs: 0,
  atStart: 'ready',
  msPerSecond: 0,
  breaksAtMs: null,
  breaksBy: 'crash',
  atEnd: 'done',
  ignoresTerm: false,
  errorLines: 0,
  startsFile: '',
}

/** The command line of a program that follows the script. */
export function stubCommand(script: Partial<StubScript> = {}): string[] {
  return [process.execPath, join(import.meta.dir, 'program.ts'), JSON.stringify(script)]
}

export function readStubScript(text: string): StubScript {
  return { ...wellBehaved, ...JSON.parse(text) }
}
