import { asRecord, parseJson } from '#lib/json.ts'
import type { Client, Reply } from '../client.ts'
import { checkBatch } from '../operations/batches.ts'
import { requireContent, requireFound } from '../operations/documents.ts'
import { checkResponse, requireOutput, textOf } from '../operations/model-calls.ts'
import { readRegister } from '../operations/platform.ts'
import { type Book, ViolationError } from '../record.ts'
import type { Existence, World } from '../world.ts'

type Given = { readonly world: World; readonly clients: readonly Client[]; readonly book: Book }

const invariant = 'everything acknowledged is there'

/** Compares everything that was acknowledged with what the gateway has. No fault is active. */
export async function checkAcknowledged(given: Given): Promise<void> {
  const { world } = given
  const ownerOf = ({ tenant }: { readonly tenant: number }) => {
    const client = given.clients[tenant]
    if (client === undefined) throw new Error(`no tenant ${tenant}`)
    return client
  }
  await each(given, world.responses, async (id, known) => {
    const response = await fetchJson(ownerOf(known), `/v1/responses/${id}`)
    if (response['status'] !== 'completed') fail(`response ${id} is ${response['status']}`)
    requireOutput(known.prompt, textOf(response))
  })
  await each(given, world.accepted, async (id, known) => {
    const reply = await ownerOf(known).send(`/v1/responses/${id}`)
    // It says of itself that it was not stored; an interrupted stream may never have been.
    if (reply.status === 404) return fail(`accepted response ${id} is not found`)
    const response = asRecord(parseJson(reply.text))
    if (reply.status !== 200) return
    if (['queued', 'in_progress'].includes(String(response['status']))) {
      fail(`response ${id} is ${response['status']}`)
    }
    checkResponse(known.prompt, response)
  })
  await each(given, world.batches, async (id, known) => {
    if (!(await checkBatch(ownerOf(known), id, known.prompts))) fail(`batch ${id} has not ended`)
  })
  await each(given, world.files, async (id, known) => {
    if (known.state === 'present') {
      await requireContent(ownerOf(known), id, known.bytes)
      for (const reader of known.readers) {
        await requireContent(ownerOf({ tenant: reader }), id, known.bytes)
      }
    } else if (known.state === 'deleted') {
      requireGone(id, await ownerOf(known).send(`/v1/files/${id}/content`))
    }
  })
  await each(given, world.collections, async (id, known) => {
    const owner = ownerOf(known)
    requireState(id, known.state, await owner.send(`/v1/collections/${known.name}`))
    if (known.state !== 'present') return
    for (const [fileId, word] of known.words) {
      if (world.files.get(fileId)?.state !== 'present') continue
      const path = `/v1/vector_stores/${id}/files/${fileId}`
      const { status } = await fetchJson(owner, path)
      if (status !== 'completed') fail(`file ${fileId} of collection ${id} is ${status}`)
      await requireFound(owner, known.name, word)
    }
  })
  await each(given, world.keys, async (id, known) => {
    const client = ownerOf(known)
    // Each replica twice, for its workers.
    for (let tries = 0; tries < 4; tries++) {
      const { status } = await client.send('/v1/models', { bearer: known.secret })
      if (known.state === 'live' && status !== 200) fail(`live key ${id}: ${status}`)
      if (known.state === 'revoked' && status !== 401) fail(`revoked key ${id}: ${status}`)
    }
  })
  await each(given, world.agents, async (id, known) => {
    requireState(id, known.state, await ownerOf(known).send(`/v1/agents/${id}`))
  })
  await each(given, world.registers, async (name, register) => {
    const value = await readRegister(ownerOf(register), name)
    const isUntouched = register.possible.includes(undefined)
    if (isUntouched || register.possible.includes(value)) return
    fail(`${name} is ${value}, not one of ${register.possible}`)
  })
}

async function each<T>(
  { book }: Given,
  known: ReadonlyMap<string, T>,
  check: (id: string, value: T) => Promise<void>,
): Promise<void> {
  for (const [id, value] of known) {
    try {
      await check(id, value)
    } catch (error) {
      const name = error instanceof ViolationError ? error.invariant : invariant
      book.violate(name, `at the end, ${id}: ${error instanceof Error ? error.message : error}`)
    }
  }
}

function fetchJson(client: Client, path: string) {
  return client.json(path)
}

function requireState(id: string, state: Existence, reply: Reply): void {
  if (state === 'present' && reply.status !== 200) fail(`${id}: ${reply.status}`)
  if (state === 'deleted') requireGone(id, reply)
}

function requireGone(id: string, { status }: Reply): void {
  if (status !== 404) fail(`deleted ${id}: ${status}`)
}

function fail(detail: string): never {
  throw new ViolationError(invariant, detail)
}
