/**
 * Opens the dialog of credentials at the first one, a header. Each box takes the focus when it appears,
 * and the last one is a query parameter, for WebSockets only.
 */
function firstCredentialFocused() {
  return { wrapComponents: { authorizationPopup: focusFirst } }
}

function focusFirst(Popup, { React }) {
  return class extends React.Component {
    componentDidMount() {
      document.querySelector('.modal-ux input')?.focus()
    }
    render() {
      return React.createElement(Popup, this.props)
    }
  }
}

const place = document.getElementById('reference')

globalThis.openDocument(place).then((spec) => {
  globalThis.SwaggerUIBundle({
    spec,
    domNode: place,
    deepLinking: true,
    displayRequestDuration: true,
    docExpansion: 'none',
    filter: true,
    persistAuthorization: false,
    plugins: [firstCredentialFocused],
    tryItOutEnabled: true,
    validatorUrl: null,
  })
})
