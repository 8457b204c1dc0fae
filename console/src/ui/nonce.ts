/** The nonce of this page's answer, by which the content security policy lets the text editor add its styles. */
export const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
