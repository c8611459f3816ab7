import { addressOfHost, isPublicAddress } from '#outbound/addresses.ts'
import { badSource } from './select-files.ts'

export type OciReference = {
  /** `https://registry/v2/some/name` */
  readonly base: string
  /** A tag, or a digest. */
  readonly reference: string
  readonly digest: string | null
}

const referenceCharsMax = 512
const namePattern =
  /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$/
const hostPattern = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i
const tagPattern = /^\w[\w.-]{0,127}$/
const digestPattern = /^sha256:[0-9a-f]{64}$/

/** `registry.example.com/some/name:tag` or `…@sha256:…`. */
export function readReference(text: string): OciReference {
  const [, host = '', rest = ''] = /^([^/]+)\/(.+)$/.exec(text) ?? []
  const [, name = '', tag, digest] = /^([^:@]+)(?::([^@]+))?(?:@(.+))?$/.exec(rest) ?? []
  // What is neither a domain nor has a port is the first part of a name, without a registry.
  const isHost = hostPattern.test(host) && (host === 'localhost' || /[.:]/.test(host))
  const isFit =
    isHost &&
    text.length <= referenceCharsMax &&
    namePattern.test(name) &&
    (tag === undefined || tagPattern.test(tag)) &&
    (digest === undefined || digestPattern.test(digest))
  const registry = isFit ? URL.parse(`https://${host}`) : null
  if (registry === null) {
    throw badSource('A reference is written "registry/name:tag" or "registry/name@sha256:…".')
  }
  return {
    base: `${schemeOf(registry)}//${registry.host}/v2/${name}`,
    reference: digest ?? tag ?? 'latest',
    digest: digest ?? null,
  }
}

/** A registry at a private address speaks plain http, as container tools have it too. */
function schemeOf({ hostname }: URL): 'http:' | 'https:' {
  const address = addressOfHost(hostname)
  const isNear = hostname === 'localhost' || (address !== null && !isPublicAddress(address))
  return isNear ? 'http:' : 'https:'
}
