export type Attachment = {
  readonly name: string
  readonly type: string
  readonly bytes: number
  readonly dataUrl: string
}

/** Larger files belong into a collection. */
export const attachmentBytesMax = 20 * 1024 * 1024

export async function readAttachment(file: File): Promise<Attachment> {
  const type = file.type === '' ? 'application/octet-stream' : file.type
  const dataUrl = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(new Blob([file], { type }))
  })
  return { name: file.name, type, bytes: file.size, dataUrl }
}
