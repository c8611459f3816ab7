import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord } from '#lib/json.ts'

/** Resource attributes of an export. All names begin with `attributePrefix`. */
export type Identity = Readonly<Record<string, string>>

/** Attributes of exporters with this prefix are removed: only the gateway knows who sends. */
export const attributePrefix = 'sluice.'

const resourceLists = ['resourceMetrics', 'resourceLogs', 'resourceSpans']

/** An export in JSON with the identity in every resource. */
export function identifyJson(body: unknown, identity: Identity): unknown {
  const added = Object.entries(identity).map(([key, stringValue]) => ({
    key,
    value: { stringValue },
  }))
  return Object.fromEntries(
    Object.entries(asRecord(body)).map(([name, list]) => {
      if (!resourceLists.includes(name) || !Array.isArray(list)) return [name, list]
      return [name, list.map((item) => identifyItem(asRecord(item), added))]
    }),
  )
}

function identifyItem(item: Record<string, unknown>, added: readonly object[]): object {
  const resource = asRecord(item['resource'])
  const given = Array.isArray(resource['attributes']) ? resource['attributes'] : []
  const kept = given.filter((attribute) => {
    const { key } = isRecord(attribute) ? attribute : {}
    return typeof key === 'string' && !key.startsWith(attributePrefix)
  })
  return { ...item, resource: { ...resource, attributes: [...kept, ...added] } }
}

/**
 * The same for protobuf. The export requests of metrics, logs and traces have the same structure as far
 * as resources: `resource_… = 1 { resource = 1 { attributes = 1 { key = 1, value = 2 } } }`. Everything
 * else is copied. Throws `invalid_request` for what is no protobuf.
 */
export function identifyProtobuf(bytes: Uint8Array, identity: Identity): Uint8Array {
  const added = Object.entries(identity).map(([key, value]) =>
    encodeField(
      Buffer.concat([
        encodeField(Buffer.from(key)),
        encodeField(encodeField(Buffer.from(value)), 2),
      ]),
    ),
  )
  return mapFirstField(bytes, (item) => {
    let hasResource = false
    const identified = mapFirstField(item, (resource) => {
      const kept = filterFirstField(resource, (attribute) => !isOurs(attribute))
      if (hasResource) return kept
      hasResource = true
      return Buffer.concat([...added, kept])
    })
    return hasResource ? identified : Buffer.concat([encodeField(Buffer.concat(added)), identified])
  })
}

function isOurs(attribute: Uint8Array): boolean {
  for (const { number, content } of fieldsOf(attribute)) {
    if (number === 1 && content !== null) {
      return Buffer.from(content).toString().startsWith(attributePrefix)
    }
  }
  return false
}

function mapFirstField(bytes: Uint8Array, map: (content: Uint8Array) => Uint8Array): Uint8Array {
  const parts = [...fieldsOf(bytes)].map(({ number, content, whole }) =>
    number === 1 && content !== null ? encodeField(map(content)) : whole,
  )
  return Buffer.concat(parts)
}

function filterFirstField(bytes: Uint8Array, isKept: (content: Uint8Array) => boolean): Uint8Array {
  const kept = [...fieldsOf(bytes)].filter(
    ({ number, content }) => number !== 1 || content === null || isKept(content),
  )
  return Buffer.concat(kept.map(({ whole }) => whole))
}

const lengthDelimited = 2

/** The fields of a message; `content` of those with a length. */
function* fieldsOf(bytes: Uint8Array) {
  for (let at = 0; at < bytes.length; ) {
    const start = at
    const tag = readVarint(bytes, at)
    at = tag.end
    const number = Math.floor(tag.value / 8)
    const wireType = tag.value % 8
    let content: Uint8Array | null = null
    if (wireType === 0) at = readVarint(bytes, at).end
    else if (wireType === 1) at += 8
    else if (wireType === 5) at += 4
    else if (wireType === lengthDelimited) {
      const length = readVarint(bytes, at)
      at = length.end + length.value
      content = bytes.subarray(length.end, at)
    } else throw notProtobuf()
    if (at > bytes.length) throw notProtobuf()
    yield { number, content, whole: bytes.subarray(start, at) }
  }
}

const varintBytesMax = 10

function readVarint(bytes: Uint8Array, start: number): { value: number; end: number } {
  let value = 0
  for (let at = start; at < start + varintBytesMax; at++) {
    const byte = bytes[at]
    if (byte === undefined) throw notProtobuf()
    value += (byte & 0x7f) * 2 ** (7 * (at - start))
    if (byte < 0x80) return { value, end: at + 1 }
  }
  throw notProtobuf()
}

function encodeField(content: Uint8Array, number = 1): Uint8Array {
  const length: number[] = []
  for (let rest = content.length; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) {
      length.push(rest)
      break
    }
    length.push((rest % 128) + 128)
  }
  return Buffer.concat([Uint8Array.of(number * 8 + lengthDelimited, ...length), content])
}

function notProtobuf(): AppError {
  return new AppError('invalid_request', 'The body is not valid protobuf.')
}
