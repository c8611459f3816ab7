import { signal } from '@preact/signals'
import { me } from '../../session/session.ts'

/** What the gateway has of a large file, so that it is continued even after a reload of the page. */
export type BegunUpload = {
  readonly uploadId: string
  /** Of the parts that arrived, in the order of the file. */
  readonly partIds: readonly string[]
  /** When the gateway forgets it, in Unix seconds. */
  readonly expiresAt: number
  readonly name: string
  readonly bytes: number
  /** Another content under the same name is another upload. */
  readonly modifiedMs: number
}

type Identity = Pick<BegunUpload, 'name' | 'bytes' | 'modifiedMs'>

/** The oldest is forgotten first; the gateway removes its parts by itself. */
const begunMax = 50

/** Uploads of an earlier visit, which continue when their files are chosen again. */
export const interrupted = signal<readonly BegunUpload[]>([])

const storageKey = () => `sluice.uploads.${me.value?.id ?? ''}`

export function identityOf({ name, size: bytes, lastModified: modifiedMs }: File): Identity {
  return { name, bytes, modifiedMs }
}

export function findBegun(file: File): BegunUpload | null {
  return read().find((one) => isSame(one, identityOf(file))) ?? null
}

export function keepBegun(begun: BegunUpload): void {
  write([...read().filter((one) => !isSame(one, begun)), begun].slice(-begunMax))
}

export function forgetBegun(identity: Identity): void {
  write(read().filter((one) => !isSame(one, identity)))
}

/** Looks for uploads that no page continues; `running`: those of this page. */
export function findInterrupted(running: readonly Identity[]): void {
  interrupted.value = read().filter((one) => !running.some((other) => isSame(one, other)))
}

function isSame(one: Identity, other: Identity): boolean {
  return one.name === other.name && one.bytes === other.bytes && one.modifiedMs === other.modifiedMs
}

/** Without storage, as in some private windows, a reload begins anew. */
function read(): readonly BegunUpload[] {
  try {
    const stored = JSON.parse(localStorage.getItem(storageKey()) ?? '[]') as BegunUpload[]
    return stored.filter(({ expiresAt }) => expiresAt * 1_000 > Date.now())
  } catch {
    return []
  }
}

function write(begun: readonly BegunUpload[]): void {
  try {
    if (begun.length === 0) localStorage.removeItem(storageKey())
    else localStorage.setItem(storageKey(), JSON.stringify(begun))
  } catch {
    // It is full or forbidden.
  }
}
