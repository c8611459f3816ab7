import { join } from 'node:path'

export type StubScript = {
  sampleRateHz: number
  framed: boolean
  readyAfterMs: number
  atStart: 'ready' | 'exit' | 'silence' | 'refuse'
  /** The processing time per second of audio. */
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
  /** Every started program appends a line with its process id. */
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

/** The command line of a program with this script. */
export function stubCommand(script: Partial<StubScript> = {}): string[] {
  return [process.execPath, join(import.meta.dir, 'program.ts'), JSON.stringify(script)]
}

export function readStubScript(text: string): StubScript {
  return { ...wellBehaved, ...JSON.parse(text) }
}
