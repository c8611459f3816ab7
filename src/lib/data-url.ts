import { percentDecoded } from './url.ts'

export type DataUrl = { readonly mimeType: string; readonly base64: string }

/** The content of a data URL; null for any other text. */
export function readDataUrl(url: string): DataUrl | null {
  const comma = /^data:/i.test(url) ? url.indexOf(',') : -1
  if (comma === -1) return null
  const [mimeType = '', ...rest] = url.slice('data:'.length, comma).toLowerCase().split(';')
  const body = url.slice(comma + 1)
  const base64 = rest.includes('base64')
    ? body
    : Buffer.from(percentDecoded(body)).toString('base64')
  return { mimeType: mimeType === '' ? 'text/plain' : mimeType, base64 }
}
