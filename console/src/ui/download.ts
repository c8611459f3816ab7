const keptMs = 10_000

/** Offers data as a file. */
export function saveFile(data: Blob, name: string): void {
  const url = URL.createObjectURL(data)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // Firefox reads it after the click.
  setTimeout(() => URL.revokeObjectURL(url), keptMs)
}
