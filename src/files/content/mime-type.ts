/** Detects the type from the first bytes, then the extension. The `Content-Type` of the upload is ignored. */
export async function detectMimeType(head: Uint8Array, name: string): Promise<string> {
  const extension = /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? ''
  const found = await detectMagic(head)
  if (found !== null && !containers.has(found)) return found
  const named = extensions[extension]
  if (found !== null) return named !== undefined && isPackage(named) ? named : found
  if (!looksLikeText(head)) return 'application/octet-stream'
  if (/^\s*(<\?xml[^>]*>\s*)?(<!--[\s\S]*?-->\s*)*<svg[\s>]/i.test(textOf(head))) {
    return 'image/svg+xml'
  }
  return named !== undefined && isText(named) ? named : 'text/plain'
}

async function detectMagic(head: Uint8Array): Promise<string | null> {
  try {
    // Loaded on first use, to keep it out of the start.
    const { fileTypeFromBuffer } = await import('file-type')
    const found = await fileTypeFromBuffer(head)
    // XML is handled as text, which may be SVG.
    return found === undefined || found.mime === 'application/xml' ? null : found.mime
  } catch {
    // The head may end inside an archive entry.
    return null
  }
}

/** Containers of many formats; the extension decides. */
const containers: ReadonlySet<string> = new Set(['application/zip', 'application/x-cfb'])

const office = 'application/vnd.openxmlformats-officedocument'
const extensions: Readonly<Record<string, string>> = {
  csv: 'text/csv',
  css: 'text/css',
  doc: 'application/msword',
  docx: `${office}.wordprocessingml.document`,
  epub: 'application/epub+zip',
  htm: 'text/html',
  html: 'text/html',
  js: 'text/javascript',
  json: 'application/json',
  jsonl: 'application/jsonl',
  md: 'text/markdown',
  markdown: 'text/markdown',
  odt: 'application/vnd.oasis.opendocument.text',
  ppt: 'application/vnd.ms-powerpoint',
  pptx: `${office}.presentationml.presentation`,
  tsv: 'text/tab-separated-values',
  txt: 'text/plain',
  xls: 'application/vnd.ms-excel',
  xlsx: `${office}.spreadsheetml.sheet`,
  xml: 'application/xml',
  yaml: 'application/yaml',
  yml: 'application/yaml',
}

function isPackage(mimeType: string): boolean {
  return /officedocument|opendocument|epub|msword|ms-excel|ms-powerpoint/.test(mimeType)
}

function isText(mimeType: string): boolean {
  return mimeType.startsWith('text/') || /\/(json|jsonl|xml|yaml)$/.test(mimeType)
}

/** Text has no zero bytes, except UTF-16 with a byte-order mark. */
function looksLikeText(head: Uint8Array): boolean {
  const [first, second] = head
  const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)
  return isUtf16 || !head.includes(0)
}

function textOf(head: Uint8Array): string {
  return new TextDecoder().decode(head)
}
