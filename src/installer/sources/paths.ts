import { AppError } from '#lib/errors.ts'

const pathCharsMax = 512
const nameBytesMax = 200
const depthMax = 8
/** Names that are devices on some systems, whatever follows their dot. */
const deviceName = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i
/** What ends a text for a program, or separates folders, or cannot be seen. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
const unfitCharacter = /[\u0000-\u001f\u007f-\u009f\\:*?"<>|\u200e\u200f\u202a-\u202e\u2066-\u2069]/

/** Why a path cannot be that of a file in a model's folder; null: it can. */
export function faultOfPath(path: string): string | null {
  if (path === '' || path.length > pathCharsMax) return 'is empty or too long'
  if (path.startsWith('/')) return 'is absolute'
  if (unfitCharacter.test(path) || !path.isWellFormed()) {
    return 'has a character that is not allowed'
  }
  const names = path.split('/')
  if (names.length > depthMax) return 'has too many folders'
  return names.map(faultOfName).find((fault) => fault !== null) ?? null
}

/** The path as it is stored, always in the same spelling. Throws `unprocessable` (`bad_source`). */
export function checkPath(path: string): string {
  const spelled = path.normalize('NFC')
  const fault = faultOfPath(spelled)
  if (fault === null) return spelled
  const shown = JSON.stringify(path.slice(0, 200))
  throw new AppError('unprocessable', `The path ${shown} of the source ${fault}.`, {
    code: 'bad_source',
  })
}

function faultOfName(name: string): string | null {
  if (name === '') return 'has an empty name in it'
  if (name === '.' || name === '..') return 'leads out of its folder'
  if (Buffer.byteLength(name) > nameBytesMax) return 'has a name that is too long'
  if (name.startsWith(' ') || /[ .]$/.test(name)) return 'has a name that ends or begins badly'
  if (deviceName.test(name)) return 'has a name that is kept for a device'
  return null
}
