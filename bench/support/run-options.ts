import { readSettings, settingsOption } from './settings.ts'

/** Common options, for `parseArgs`. */
export const runFlags = {
  quick: { type: 'boolean', default: false },
  database: { type: 'string' },
  set: settingsOption,
  json: { type: 'string' },
} as const

export type RunOptions = {
  readonly quick: boolean
  /** PostgreSQL server for the gateways' databases; default: PGlite. */
  readonly databaseServer: string | undefined
  readonly settings: readonly string[]
  readonly jsonFile: string | undefined
}

/** Reads the values of `runFlags`. */
export function readRunOptions(values: {
  readonly quick: boolean
  readonly database?: string | undefined
  readonly set: readonly string[]
  readonly json?: string | undefined
}): RunOptions {
  const { quick, database, set, json } = values
  return { quick, databaseServer: database, settings: readSettings(set), jsonFile: json }
}
