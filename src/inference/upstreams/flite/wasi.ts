/**
 * Runs a WASI command that writes one file. It has arguments and an empty folder for that file;
 * no other file, no environment and no network.
 */

const errno = { ok: 0, badDescriptor: 8, notSeekable: 70 }
const folderDescriptor = 3
const fileDescriptor = 4
const fileTypes = { characterDevice: 2, folder: 3, file: 4 }
const stderrBytesMax = 2_000

class Exited extends Error {
  readonly code: number
  constructor(code: number) {
    super(`exit code ${code}`)
    this.code = code
  }
}

/** Returns the written file. Throws if the program fails, or writes more than `bytesMax`. */
export function runCommand(
  module: WebAssembly.Module,
  args: readonly string[],
  bytesMax: number,
): Uint8Array {
  const argv = args.map((arg) => Buffer.from(`${arg}\0`))
  const file = new GrowingFile(bytesMax)
  let printed = ''
  let memory = new WebAssembly.Memory({ initial: 0 })
  const view = () => new DataView(memory.buffer)
  const bytesAt = (at: number, length: number) => new Uint8Array(memory.buffer, at, length)

  const system = {
    args_sizes_get(countAt: number, bytesCountAt: number) {
      view().setUint32(countAt, argv.length, true)
      view().setUint32(
        bytesCountAt,
        argv.reduce((sum, { length }) => sum + length, 0),
        true,
      )
      return errno.ok
    },
    args_get(pointersAt: number, bufferAt: number) {
      let at = bufferAt
      for (const [index, arg] of argv.entries()) {
        view().setUint32(pointersAt + 4 * index, at, true)
        bytesAt(at, arg.length).set(arg)
        at += arg.length
      }
      return errno.ok
    },
    clock_time_get(_: number, __: bigint, timeAt: number) {
      // It only measures how long the program runs.
      view().setBigUint64(timeAt, 0n, true)
      return errno.ok
    },
    fd_close: () => errno.ok,
    fd_fdstat_get(descriptor: number, at: number) {
      if (descriptor > fileDescriptor) return errno.badDescriptor
      const { characterDevice, folder, file: plain } = fileTypes
      const type = descriptor < folderDescriptor ? characterDevice : plain
      bytesAt(at, 24).fill(0)
      view().setUint8(at, descriptor === folderDescriptor ? folder : type)
      const allRights = 0x1fff_ffffn
      view().setBigUint64(at + 8, allRights, true)
      view().setBigUint64(at + 16, allRights, true)
      return errno.ok
    },
    fd_fdstat_set_flags: () => errno.ok,
    fd_prestat_get(descriptor: number, at: number) {
      if (descriptor !== folderDescriptor) return errno.badDescriptor
      view().setUint8(at, 0)
      view().setUint32(at + 4, 1, true)
      return errno.ok
    },
    fd_prestat_dir_name(_: number, at: number) {
      view().setUint8(at, '/'.charCodeAt(0))
      return errno.ok
    },
    fd_read: () => errno.badDescriptor,
    fd_seek(descriptor: number, offset: bigint, whence: number, at: number) {
      if (descriptor !== fileDescriptor) return errno.notSeekable
      view().setBigUint64(at, BigInt(file.seek(Number(offset), whence)), true)
      return errno.ok
    },
    fd_write(descriptor: number, vectorsAt: number, count: number, writtenAt: number) {
      let written = 0
      for (let index = 0; index < count; index++) {
        const at = view().getUint32(vectorsAt + 8 * index, true)
        const length = view().getUint32(vectorsAt + 8 * index + 4, true)
        const bytes = bytesAt(at, length)
        if (descriptor === fileDescriptor) file.write(bytes)
        else printed = (printed + new TextDecoder().decode(bytes)).slice(0, stderrBytesMax)
        written += length
      }
      view().setUint32(writtenAt, written, true)
      return errno.ok
    },
    path_open(...given: readonly unknown[]) {
      view().setUint32(Number(given.at(-1)), fileDescriptor, true)
      return errno.ok
    },
    proc_exit(code: number) {
      throw new Exited(code)
    },
  }

  const { exports } = new WebAssembly.Instance(module, { wasi_snapshot_preview1: system })
  const { memory: own, _start: start } = exports
  if (!(own instanceof WebAssembly.Memory) || typeof start !== 'function') {
    throw new Error('not a WASI command')
  }
  memory = own
  try {
    start()
  } catch (error) {
    if (!(error instanceof Exited)) throw error
    if (error.code !== 0) throw new Error(`${error.message}: ${printed.trim()}`)
  }
  return file.contents()
}

class GrowingFile {
  #bytes = new Uint8Array(65_536)
  #size = 0
  #position = 0
  readonly #bytesMax: number

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** `whence`: from the start, the position, or the end. */
  seek(offset: number, whence: number): number {
    this.#position = offset + ([0, this.#position, this.#size][whence] ?? 0)
    return this.#position
  }

  write(bytes: Uint8Array): void {
    const end = this.#position + bytes.length
    if (end > this.#bytesMax) throw new Error('the output is too long')
    if (end > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(end, 2 * this.#bytes.length))
      grown.set(this.#bytes)
      this.#bytes = grown
    }
    this.#bytes.set(bytes, this.#position)
    this.#position = end
    this.#size = Math.max(this.#size, end)
  }

  contents(): Uint8Array {
    return this.#bytes.subarray(0, this.#size)
  }
}
