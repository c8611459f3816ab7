import { open, rm } from 'node:fs/promises'
import { type Static, Type } from '@sinclair/typebox'
import { isMissing, writeDurably } from '#installer/layout.ts'
import { parseJson } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'

const offset = Type.Integer({ minimum: 0 })
const stateSchema = Type.Object({
  /** Of the form of this file. */
  version: Type.Literal(1),
  /** What the origin says that the bytes are of; see `validatorOf`. */
  validator: Type.Union([Type.String(), Type.Null()]),
  bytes: Type.Union([offset, Type.Null()]),
  sha256: Type.Union([Type.String(), Type.Null()]),
  /** What is on the disk, also when the power goes. */
  done: Type.Array(Type.Tuple([offset, offset]), { maxItems: 10_000 }),
})

/** What is known of the bytes of a part; where they are fetched from is none of it. */
export type PartState = Static<typeof stateSchema>

const checker = compileChecker(stateSchema)
const stateBytesMax = 1024 * 1024

function statePathOf(partPath: string): string {
  return `${partPath}.state`
}

/** Null: there is none, or none that can be believed. */
export async function readState(partPath: string, partBytes: number): Promise<PartState | null> {
  const state = parseJson(await readShort(statePathOf(partPath)))
  if (!checker.check(state)) return null
  return { ...state, done: state.done.map(([start, end]) => [start, Math.min(end, partBytes)]) }
}

export async function writeState(partPath: string, state: PartState): Promise<void> {
  await writeDurably(statePathOf(partPath), JSON.stringify(state))
}

export async function removeState(partPath: string): Promise<void> {
  await rm(statePathOf(partPath), { force: true })
}

async function readShort(path: string): Promise<string> {
  try {
    const file = await open(path, 'r')
    try {
      const { size } = await file.stat()
      return size > stateBytesMax ? '' : await file.readFile('utf8')
    } finally {
      await file.close()
    }
  } catch (error) {
    if (isMissing(error)) return ''
    throw error
  }
}
