/**
 * The OpenAPI document. Where it is only for those who may call the API, the reader is asked for a
 * credential, which is kept by nothing.
 */
globalThis.openDocument = async function openDocument(place) {
  const answer = await fetch('/openapi.json')
  if (answer.ok) return answer.json()
  if (answer.status !== 401) throw new Error(`/openapi.json answers ${answer.status}.`)
  const { form, input, note } = createForm()
  place.append(form)
  input.focus()
  return new Promise((resolve, reject) => {
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      askWith(input.value.trim())
        .then((found) => {
          note.textContent = found.ok ? '' : found.sentence
          if (!found.ok) return
          form.remove()
          resolve(found.document)
        })
        .catch(reject)
    })
  })
}

async function askWith(credential) {
  const headers = credential.startsWith('sk-')
    ? { 'x-api-key': credential }
    : { authorization: `Bearer ${credential}` }
  const answer = await fetch('/openapi.json', { headers })
  const body = await answer.json()
  return answer.ok ? { ok: true, document: body } : { ok: false, sentence: body.error.message }
}

function createForm() {
  const form = document.createElement('form')
  const label = document.createElement('label')
  const input = document.createElement('input')
  const button = document.createElement('button')
  const note = document.createElement('p')
  form.id = 'credential'
  label.textContent = 'API key or token'
  Object.assign(input, {
    type: 'password',
    name: 'credential',
    required: true,
    autocomplete: 'off',
  })
  button.textContent = 'Open the documentation'
  note.setAttribute('role', 'alert')
  label.append(input)
  form.append(label, button, note)
  return { form, input, note }
}
