import type { Subprocess } from 'bun'
import { isRecord } from '#lib/json.ts'
import { StartError } from './children.ts'

/** The port that a server prints as `{"port":…}` when it listens. */
export async function readPort({ stdout }: Subprocess, script: string): Promise<number> {
  if (!(stdout instanceof ReadableStream)) throw new Error(`${script} has no output`)
  const { value } = await stdout.getReader().read()
  const line = new TextDecoder().decode(value)
  if (line === '') throw new StartError(`${script} does not start; does another have its port?`)
  const ready: unknown = JSON.parse(line)
  return isRecord(ready) ? Number(ready['port']) : Number.NaN
}
