#!/usr/bin/env bash
# A signer of PodCertificateRequests in the namespace default, made of openssl and kubectl. Its authority is ca.pem and ca.key of the folder
# that it is called in; KUBECTL_AS is a user to act as.
#
#   pod_signer.sh next          the name of a request that nobody has answered; waits for one, at most 20 seconds
#   pod_signer.sh sign NAME     a certificate for a day, to be renewed after half of it
#   pod_signer.sh deny NAME
set -euo pipefail

next() {
  for _ in $(seq 100); do
    name=$(kubectl get podcertificaterequests --no-headers 2>/dev/null | awk '$6 == "Pending" { print $1; exit }')
    [ -z "$name" ] || break
    sleep 0.2
  done
  printf '%s\n' "$name"
}

# answer NAME TYPE REASON MORE: writes the status.
answer() {
  kubectl ${KUBECTL_AS:+--as="$KUBECTL_AS"} patch podcertificaterequest "$1" --subresource=status --type=merge -p '{"status": {"conditions": [
    {"type": "'"$2"'", "status": "True", "reason": "'"$3"'", "message": "said the signer", "lastTransitionTime": "'"$(date -u +%FT%TZ)"'"}]'"$4"'}}'
}

# moment FIELD FILE: a time of a certificate, as the API writes it.
moment() {
  openssl x509 -in "$2" -noout "-$1" -dateopt iso_8601 | sed 's/.*=//; s/ /T/'
}

sign() {
  kubectl get podcertificaterequest "$1" -o jsonpath='{.spec.stubPKCS10Request}' | base64 -d > "$1.der"
  openssl req -inform DER -in "$1.der" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -set_serial 7 -subj /CN=pod -days 1 -out "$1.pem" 2>/dev/null
  local from to
  from=$(moment startdate "$1.pem")
  to=$(moment enddate "$1.pem")
  answer "$1" Issued Signed ', "certificateChain": "'"$(awk '{ printf "%s\\n", $0 }' "$1.pem")"'", "notBefore": "'"$from"'", "notAfter": "'"$to"'",
    "beginRefreshAt": "'"$(date -u -d "$from + 12 hours" +%FT%TZ)"'"'
}

case $1 in
  next) next ;;
  sign) sign "$2" ;;
  deny) answer "$2" Denied NotToday '' ;;
esac
