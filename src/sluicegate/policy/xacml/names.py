"""The identifiers of the standard: data types, categories, attributes and status codes."""

from __future__ import annotations

from enum import Enum

XSD = "http://www.w3.org/2001/XMLSchema#"
URN = "urn:oasis:names:tc:xacml:"


class DataType(Enum):
    """The data types of XACML 3.0, appendix A.2 and B.3."""

    STRING = XSD + "string"
    BOOLEAN = XSD + "boolean"
    INTEGER = XSD + "integer"
    DOUBLE = XSD + "double"
    TIME = XSD + "time"
    DATE = XSD + "date"
    DATE_TIME = XSD + "dateTime"
    DAY_TIME_DURATION = XSD + "dayTimeDuration"
    YEAR_MONTH_DURATION = XSD + "yearMonthDuration"
    ANY_URI = XSD + "anyURI"
    HEX_BINARY = XSD + "hexBinary"
    BASE64_BINARY = XSD + "base64Binary"
    RFC822_NAME = URN + "1.0:data-type:rfc822Name"
    X500_NAME = URN + "1.0:data-type:x500Name"
    IP_ADDRESS = URN + "2.0:data-type:ipAddress"
    DNS_NAME = URN + "2.0:data-type:dnsName"
    XPATH_EXPRESSION = URN + "3.0:data-type:xpathExpression"

    @property
    def short(self) -> str:
        """The last part of the identifier, as function names use it: `dateTime`."""
        return self.value.replace("#", ":").rpartition(":")[2]


_DRAFT = "http://www.w3.org/TR/2002/WD-xquery-operators-20020816#"
# How XACML 1 and 2 named the durations; one meaning, so they are read as today's.
_FORMER = {
    _DRAFT + "dayTimeDuration": DataType.DAY_TIME_DURATION,
    _DRAFT + "yearMonthDuration": DataType.YEAR_MONTH_DURATION,
    URN + "2.0:data-type:dayTimeDuration": DataType.DAY_TIME_DURATION,
    URN + "2.0:data-type:yearMonthDuration": DataType.YEAR_MONTH_DURATION,
}
DATA_TYPES: dict[str, DataType] = {each.value: each for each in DataType} | _FORMER

SUBJECT = URN + "1.0:subject-category:access-subject"
RESOURCE = URN + "3.0:attribute-category:resource"
ACTION = URN + "3.0:attribute-category:action"
ENVIRONMENT = URN + "3.0:attribute-category:environment"

SUBJECT_ID = URN + "1.0:subject:subject-id"
RESOURCE_ID = URN + "1.0:resource:resource-id"
ACTION_ID = URN + "1.0:action:action-id"
CURRENT_TIME = URN + "1.0:environment:current-time"
CURRENT_DATE = URN + "1.0:environment:current-date"
CURRENT_DATE_TIME = URN + "1.0:environment:current-dateTime"
CONTENT_SELECTOR = URN + "3.0:content-selector"


class StatusCode(Enum):
    """The status codes of appendix B.8."""

    OK = URN + "1.0:status:ok"
    MISSING_ATTRIBUTE = URN + "1.0:status:missing-attribute"
    SYNTAX_ERROR = URN + "1.0:status:syntax-error"
    PROCESSING_ERROR = URN + "1.0:status:processing-error"
